-- Questions of a survey in two waves. A respondent may answer both.

-- Answers
SELECT COUNT(*) AS n FROM wave1;

-- By age group and gender
SELECT age_group, gender, COUNT(*) AS n FROM wave1 GROUP BY age_group, gender;

-- Mean satisfaction
SELECT age_group, AVG(satisfaction) AS mean FROM wave1 GROUP BY age_group ORDER BY age_group;

-- Distribution of an answer
SELECT satisfaction, COUNT(*) AS n FROM wave1 GROUP BY satisfaction;

-- Distribution in percent
SELECT satisfaction, 100.0 * COUNT(*) / SUM(COUNT(*)) OVER () AS percent FROM wave1 GROUP BY satisfaction ORDER BY satisfaction;

-- Trust, with those who gave no answer
SELECT trust, COUNT(*) AS n FROM wave1 GROUP BY trust;

-- Trust, without them
SELECT trust, COUNT(*) AS n FROM wave1 WHERE trust IS NOT NULL GROUP BY trust;

-- Top two boxes
SELECT AVG(CASE WHEN satisfaction >= 4 THEN 1 ELSE 0 END) AS top_two FROM wave1;

-- Net score
SELECT (COUNT(*) FILTER (WHERE satisfaction = 5) - COUNT(*) FILTER (WHERE satisfaction <= 2)) * 100.0 / COUNT(*) AS net FROM wave1;

-- Parties
SELECT COALESCE(party, 'no answer') AS party, COUNT(*) AS n FROM wave1 GROUP BY 1;

-- Vote shares among voters
SELECT party, COUNT(*) * 1.0 / SUM(COUNT(*)) OVER () AS share FROM wave1 WHERE votes AND party IS NOT NULL GROUP BY party;

-- Weighted counts
SELECT party, SUM(weight) AS n FROM wave1 WHERE party IS NOT NULL GROUP BY party;

-- Weighted share of voters
SELECT SUM(CASE WHEN votes THEN weight ELSE 0 END) / SUM(weight) AS share FROM wave1;

-- Weighted mean
SELECT gender, SUM(weight * trust) / SUM(CASE WHEN trust IS NOT NULL THEN weight END) AS mean FROM wave1 GROUP BY gender;

-- Share of voters by group
SELECT age_group, AVG(CAST(votes AS INT)) AS share FROM wave1 GROUP BY age_group;

-- Mean income of those who say it
SELECT gender, AVG(income) AS mean, COUNT(income) AS said FROM wave1 GROUP BY gender;

-- Share without an answer
SELECT AVG(CASE WHEN income IS NULL THEN 1 ELSE 0 END) AS missing FROM wave1;

-- Income classes
SELECT CASE WHEN income < 2000 THEN '1 low' WHEN income < 6000 THEN '2 middle' WHEN income >= 6000 THEN '3 high' END AS class, COUNT(*) AS n
FROM wave1 GROUP BY class ORDER BY class;

-- Deviation
SELECT STDDEV_POP(satisfaction) AS s FROM wave1;

-- Median income
-- @near 0.05
SELECT MEDIAN(income) AS m FROM wave1;

-- Income deciles by gender
-- @near 0.08
SELECT gender, QUANTILE_CONT(income, 0.1) AS d1, QUANTILE_CONT(income, 0.9) AS d9 FROM wave1 GROUP BY gender;

-- Comments
SELECT COUNT(comment) AS commented, COUNT(*) AS n FROM wave1;

-- Comments, cleaned
-- @delta
SELECT LOWER(TRIM(comment)) AS comment, COUNT(*) AS n FROM wave1 WHERE comment IS NOT NULL GROUP BY 1;

-- Comments that are not empty
SELECT COUNT(*) AS n FROM wave1 WHERE TRIM(comment) <> '';

-- Comments with a word
SELECT COUNT(*) AS n FROM wave1 WHERE LOWER(comment) LIKE '%good%';

-- Length of comments
SELECT AVG(CLAMP(LENGTH(comment), 0, 20)) AS letters FROM wave1 WHERE LENGTH(comment) <= 20;

-- Both waves
SELECT COUNT(*) AS n FROM wave1 JOIN wave2 USING (respondent);

-- Only the first wave
SELECT COUNT(*) AS n FROM wave1 WHERE respondent NOT IN (SELECT respondent FROM wave2);

-- Panel loss by age
SELECT a.age_group, COUNT(*) FILTER (WHERE b.votes IS NULL) AS lost, COUNT(*) AS n FROM wave1 a LEFT JOIN wave2 b ON a.respondent = b.respondent
GROUP BY a.age_group;

-- Change of satisfaction
SELECT AVG(b.satisfaction - a.satisfaction) AS change FROM wave1 a JOIN wave2 b USING (respondent);

-- Who changed party
SELECT a.party AS before, b.party AS now, COUNT(*) AS n FROM wave1 a JOIN wave2 b ON a.respondent = b.respondent
WHERE a.party IS NOT NULL AND b.party IS NOT NULL GROUP BY before, now;

-- Share who changed
SELECT AVG(CASE WHEN a.party <> b.party THEN 1.0 ELSE 0.0 END) AS share FROM wave1 a JOIN wave2 b ON a.respondent = b.respondent;

-- Both waves below each other
SELECT wave, AVG(satisfaction) AS mean FROM (
  SELECT respondent, 1 AS wave, satisfaction FROM wave1 UNION ALL SELECT respondent, 2, satisfaction FROM wave2
) AS w GROUP BY wave;

-- Everybody who answered at least once
SELECT COUNT(DISTINCT respondent) AS n FROM (SELECT respondent FROM wave1 UNION ALL SELECT respondent FROM wave2) AS w;

-- Full join of the waves
SELECT COUNT(*) AS n, COUNT(a.satisfaction) AS first, COUNT(b.satisfaction) AS second FROM wave1 a FULL JOIN wave2 b ON a.respondent = b.respondent;

-- Rank of parties
SELECT party, COUNT(*) AS n, RANK() OVER (ORDER BY COUNT(*) DESC) AS place FROM wave1 WHERE party IS NOT NULL GROUP BY party;

-- Difference to the mean of all groups
SELECT age_group, AVG(satisfaction) - AVG(AVG(satisfaction)) OVER () AS above FROM wave1 GROUP BY age_group;

-- Most frequent party
SELECT MODE(party) AS first FROM wave1;

-- Party by gender, as columns
SELECT party, COUNT(*) FILTER (WHERE gender = 'f') AS f, COUNT(*) FILTER (WHERE gender = 'm') AS m, COUNT(*) FILTER (WHERE gender = 'x') AS x
FROM wave1 WHERE party IS NOT NULL GROUP BY party;

-- Sorted by a share
SELECT age_group, AVG(CASE WHEN votes THEN 100 ELSE 0 END) AS turnout FROM wave1 GROUP BY age_group ORDER BY turnout DESC LIMIT 2;

-- Effective number of answers
SELECT SUM(weight) * SUM(weight) / SUM(weight * weight) AS n FROM wave1;

-- Names of respondents
-- @refused DP706 COUNT(DISTINCT respondent)
SELECT respondent, AVG(trust) FROM wave1 GROUP BY respondent;
-- @instead
SELECT COUNT(DISTINCT respondent) AS n FROM wave1;

-- All comments
-- @refused DP706 COUNT(*)
SELECT comment FROM wave1 WHERE comment IS NOT NULL;
-- @instead
-- @delta
SELECT comment, COUNT(*) AS n FROM wave1 WHERE comment IS NOT NULL GROUP BY comment;

-- A list of comments
-- @refused DP706 COUNT(*)
SELECT STRING_AGG(comment, ', ') FROM wave1;
-- @instead
SELECT COUNT(*) AS n FROM wave1;

-- The third row
-- @refused DP702 skip the first rows of the answer
SELECT gender, COUNT(*) AS n FROM wave1 GROUP BY gender ORDER BY n LIMIT 1 OFFSET 2;
-- @instead
SELECT gender, COUNT(*) AS n FROM wave1 GROUP BY gender ORDER BY n LIMIT 3;

-- Correlation of two answers
SELECT CORR(trust, satisfaction) AS r FROM wave1;

-- Deviation of the sample
SELECT age_group, STDDEV_SAMP(satisfaction) AS s FROM wave1 GROUP BY age_group;

-- Standard error
SELECT STDDEV_SAMP(satisfaction) / SQRT(COUNT(*)) AS se FROM wave1;

-- Cross table with margins
SELECT gender, votes, COUNT(*) AS n FROM wave1 GROUP BY CUBE (gender, votes);

-- Subtotals by age
SELECT age_group, gender, AVG(trust) AS mean FROM wave1 GROUP BY ROLLUP (age_group, gender);

-- Comments by a regular expression
SELECT COUNT(*) AS n FROM wave1 WHERE REGEXP_MATCHES(comment, 'oo');
