-- Questions about the people of a census. One row is one person.

-- How many people
SELECT COUNT(*) FROM census;

-- By sex
SELECT sex, COUNT(*) AS n FROM census GROUP BY sex;

-- By sex and race, most frequent first
SELECT sex, race, COUNT(*) AS n FROM census GROUP BY sex, race ORDER BY n DESC;

-- By position
SELECT education, COUNT(*) FROM census GROUP BY 1 ORDER BY 2 DESC;

-- By all that is not an aggregate
SELECT sex, marital, AVG(hours) AS hours FROM census GROUP BY ALL;

-- Age groups of ten years
SELECT age // 10 * 10 AS decade, COUNT(*) AS n FROM census GROUP BY decade ORDER BY decade;

-- Each age of employment
SELECT age, COUNT(*) AS n FROM census WHERE age >= 18 AND age < 65 GROUP BY age ORDER BY age;

-- Mean income
SELECT AVG(income) FROM census;

-- Mean and deviation of wages
SELECT AVG(wage) AS mean, STDDEV_POP(wage) AS deviation FROM census;

-- Variance of hours by sex
SELECT sex, VAR_POP(hours) AS v FROM census GROUP BY sex;

-- Deviation as most people write it
SELECT STDDEV(wage) AS s FROM census;

-- Median age
-- @near 1
SELECT MEDIAN(age) AS m FROM census;

-- Quartiles of income
-- @near 0.02
SELECT QUANTILE_CONT(income, 0.25) AS q1, QUANTILE_CONT(income, 0.5) AS q2, QUANTILE_CONT(income, 0.75) AS q3 FROM census;

-- Ninetieth percentile by sex
-- @near 0.03
SELECT sex, PERCENTILE_CONT(0.9) WITHIN GROUP (ORDER BY hours) AS p90 FROM census GROUP BY sex;

-- Smallest and largest
-- @near 1
SELECT MIN(age) AS youngest, MAX(age) AS oldest FROM census;

-- Most frequent education
SELECT MODE(education) AS usual FROM census;

-- Sum with bounds in the question
SELECT SUM(CLAMP(gain, 0, 5000)) AS s FROM census;

-- Values that are not NULL
SELECT COUNT(gain) AS known, COUNT(*) - COUNT(gain) AS unknown FROM census;

-- Share of citizens
SELECT AVG(CAST(citizen AS INTEGER)) AS share FROM census;

-- Share of citizens, filtered
SELECT COUNT(*) FILTER (WHERE citizen) * 1.0 / COUNT(*) AS share FROM census;

-- Two exclusive filters
SELECT COUNT(*) FILTER (WHERE sex = 'Male') AS m, COUNT(*) FILTER (WHERE sex = 'Female') AS f FROM census;

-- Conditional sums
SELECT SUM(CASE WHEN marital = 'Married' THEN 1 ELSE 0 END) AS married, SUM(CASE WHEN age >= 65 THEN 1 ELSE 0 END) AS old FROM census;

-- COUNT_IF
SELECT race, COUNT_IF(hours > 40) AS many FROM census GROUP BY race;

-- Income classes
SELECT CASE WHEN income < 50000 THEN 'low' WHEN income < 120000 THEN 'middle' ELSE 'high' END AS class, COUNT(*) AS n, AVG(age) AS age
FROM census GROUP BY class;

-- Income per hour
SELECT SUM(income) / SUM(hours) AS per_hour FROM census;

-- Weighted mean
SELECT SUM(weight * income) / SUM(weight) AS mean FROM census;

-- Weighted mean by sex
SELECT sex, SUM(weight * wage) / SUM(weight) AS mean FROM census GROUP BY sex;

-- Groups with many people
SELECT education, COUNT(*) AS n FROM census GROUP BY education HAVING COUNT(*) > 200;

-- The three largest groups
SELECT race, education, COUNT(*) AS n FROM census GROUP BY race, education ORDER BY n DESC LIMIT 3;

-- Share of total
SELECT race, COUNT(*) AS n, 100.0 * COUNT(*) / SUM(COUNT(*)) OVER () AS percent FROM census GROUP BY race;

-- Rank of groups
SELECT education, AVG(income) AS mean, RANK() OVER (ORDER BY AVG(income) DESC) AS place FROM census GROUP BY education;

-- Running total over ages
SELECT age, COUNT(*) AS n, SUM(COUNT(*)) OVER (ORDER BY age) AS so_far FROM census WHERE age BETWEEN 20 AND 30 GROUP BY age;

-- Share within each sex
SELECT sex, race, COUNT(*) * 1.0 / SUM(COUNT(*)) OVER (PARTITION BY sex) AS share FROM census GROUP BY sex, race;

-- Best of each sex
SELECT sex, education, AVG(income) AS mean FROM census GROUP BY sex, education
QUALIFY ROW_NUMBER() OVER (PARTITION BY sex ORDER BY AVG(income) DESC) = 1;

-- Ratio of two filtered means
SELECT AVG(wage) FILTER (WHERE sex = 'Female') / AVG(wage) FILTER (WHERE sex = 'Male') AS gap FROM census;

-- Mean of a product
SELECT AVG(hours * wage) AS weekly FROM census WHERE citizen;

-- Squares
SELECT AVG(POWER(hours - 40, 2)) AS spread FROM census;

-- Root
SELECT AVG(SQRT(income)) AS r FROM census;

-- Rounded keys
SELECT ROUND(wage / 10) AS band, COUNT(*) AS n FROM census GROUP BY band;

-- Width of buckets
SELECT CAST(FLOOR(income / 20000) AS INTEGER) + 1 AS bin, COUNT(*) AS n FROM census WHERE income < 200000 GROUP BY bin;

-- Histogram by arithmetic
SELECT FLOOR(income / 25000) * 25000 AS bin, COUNT(*) AS n FROM census GROUP BY bin ORDER BY bin;

-- Missing gains as a group
SELECT gain IS NULL AS missing, COUNT(*) AS n FROM census GROUP BY missing;

-- A list of values
SELECT COUNT(*) FROM census WHERE education IN ('Bachelors', 'Doctorate') AND marital <> 'Widowed';

-- Pattern
SELECT COUNT(*) FROM census WHERE education LIKE 'B%' OR marital LIKE '%married';

-- Not between
SELECT COUNT(*) AS n FROM census WHERE NOT (age BETWEEN 30 AND 39) AND gain IS NOT NULL;

-- Occupations, which nobody listed
-- @delta
SELECT occupation, COUNT(*) AS n, AVG(hours) AS h FROM census GROUP BY occupation;

-- Occupations by a CTE
-- @delta
WITH grown AS (SELECT occupation, income FROM census WHERE age >= 25)
SELECT occupation, AVG(income) AS mean FROM grown GROUP BY occupation ORDER BY mean;

-- Decades of birth
SELECT EXTRACT(YEAR FROM born) // 10 * 10 AS decade, COUNT(*) AS n FROM census GROUP BY decade;

-- Pivot by hand
SELECT education, COUNT(*) FILTER (WHERE sex = 'Female') AS women, COUNT(*) FILTER (WHERE sex = 'Male') AS men FROM census GROUP BY education;

-- Parity
SELECT age % 2 AS odd, COUNT(*) AS n FROM census GROUP BY 1;

-- Absolute distance
SELECT AVG(ABS(hours - 40)) AS far FROM census WHERE hours <> 40;

-- Least and greatest
SELECT SUM(LEAST(income, 100000)) AS capped, SUM(GREATEST(hours - 40, 0)) AS overtime FROM census;

-- Coalesce
SELECT AVG(COALESCE(gain, 0)) AS mean FROM census;

-- NULLIF
SELECT AVG(NULLIF(income, 0)) AS earners FROM census;

-- Concatenated keys
SELECT sex || ' / ' || race AS who, COUNT(*) AS n FROM census GROUP BY who;

-- Initials
SELECT LOWER(SUBSTR(marital, 1, 3)) AS m, COUNT(*) AS n FROM census GROUP BY m;

-- A nested mean
SELECT AVG(x) AS mean FROM (SELECT hours * 2 AS x FROM census WHERE citizen) AS t;

-- Everything
-- @refused DP702 COUNT(*)
SELECT * FROM census;
-- @instead
SELECT COUNT(*) FROM census;

-- Distinct values
-- @refused DP702 GROUP BY sex
SELECT DISTINCT sex FROM census;
-- @instead
SELECT sex, COUNT(*) FROM census GROUP BY sex;

-- Above the mean of others
-- @refused DP702 run it first:  SELECT AVG(income) FROM census
SELECT COUNT(*) FROM census WHERE income > (SELECT AVG(income) FROM census);
-- @instead
SELECT COUNT(*) FROM census WHERE income > 100000;

-- Random sample
-- @refused DP702 leave it out
SELECT AVG(age) FROM census TABLESAMPLE (10 PERCENT);
-- @instead
SELECT AVG(age) FROM census;

-- Misspelt column
-- @refused DP701 income
SELECT AVG(incme) FROM census;
-- @instead
SELECT AVG(income) FROM census;

-- Groups of real numbers
-- @refused DP704 BUCKET(wage
SELECT wage, COUNT(*) FROM census GROUP BY wage;
-- @instead
SELECT BUCKET(wage, 25, 50, 75) AS band, COUNT(*) AS n FROM census GROUP BY band;
-- @plain
SELECT (wage >= 25)::INT + (wage >= 50)::INT + (wage >= 75)::INT AS band, COUNT(*) AS n FROM census GROUP BY band;

-- Deviation of a sample
SELECT STDDEV_SAMP(hours) AS s, VAR_SAMP(hours) AS v FROM census;

-- Percentiles in one list
-- @near 0.02
SELECT QUANTILE_CONT(hours, [0.25, 0.5, 0.75]) FROM census;
-- @plain
SELECT QUANTILE_CONT(hours, 0.25) AS a, QUANTILE_CONT(hours, 0.5) AS b, QUANTILE_CONT(hours, 0.75) AS c FROM census;

-- Correlation
SELECT CORR(age, income) AS r FROM census;

-- Covariance
SELECT COVAR_POP(age, hours) AS c FROM census;

-- Regression line
SELECT REGR_SLOPE(income, age) AS slope, REGR_INTERCEPT(income, age) AS start FROM census;

-- Any and all
SELECT sex, BOOL_OR(age > 89) AS very_old FROM census GROUP BY sex;

-- Distinct educations
SELECT COUNT(DISTINCT education) AS n FROM census;

-- Totals below the groups
SELECT sex, race, COUNT(*) AS n FROM census GROUP BY ROLLUP (sex, race);

-- All margins
SELECT sex, marital, COUNT(*) AS n FROM census GROUP BY CUBE (sex, marital);

-- Two sets of groups
SELECT sex, race, COUNT(*) AS n FROM census GROUP BY GROUPING SETS ((sex), (race));

-- Logarithm
SELECT AVG(LN(income + 1)) AS mean FROM census;

-- Geometric mean
SELECT EXP(AVG(LN(CLAMP(wage, 1, 100)))) AS g FROM census;

-- Regular expression
SELECT COUNT(*) AS n FROM census WHERE REGEXP_MATCHES(education, '^(B|D)');
