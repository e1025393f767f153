-- Questions of a hospital. A patient is protected with all visits, and with the tests of these visits.

-- Visits of each ward
SELECT ward, COUNT(*) AS n FROM visits GROUP BY ward;

-- Patients of each ward
SELECT ward, COUNT(DISTINCT patient_id) AS patients FROM visits GROUP BY ward;

-- Visits and patients of each month
SELECT DATE_TRUNC('month', came_on) AS month, COUNT(*) AS visits, COUNT(DISTINCT patient_id) AS patients FROM visits GROUP BY month;

-- Mean stay and cost
SELECT ward, AVG(days) AS stay, AVG(cost) AS cost FROM visits GROUP BY ward ORDER BY ward;

-- Total cost of each site
SELECT site, SUM(cost) AS cost FROM visits JOIN wards USING (ward) GROUP BY site;

-- Cost for each bed
-- @refused DP104 SUM(cost / CLAMP(beds, 0, 500))
SELECT ward, SUM(cost / beds) AS per_bed FROM visits JOIN wards USING (ward) GROUP BY ward;
-- @instead
SELECT ward, SUM(cost / CLAMP(beds, 0, 500)) AS per_bed FROM visits JOIN wards USING (ward) GROUP BY ward;

-- Share of urgent visits
SELECT ward, AVG(CASE WHEN urgent THEN 1 ELSE 0 END) AS share FROM visits GROUP BY ward;

-- Urgent, not urgent, unknown
SELECT urgent, COUNT(*) AS n FROM visits GROUP BY urgent;

-- Long stays
SELECT COUNT(*) FILTER (WHERE days > 7) AS long, COUNT(*) FILTER (WHERE days <= 7) AS short FROM visits;

-- Still here
SELECT COUNT(*) AS n FROM visits WHERE left_on IS NULL;

-- Length of stay by dates
SELECT AVG(left_on - came_on) AS stay FROM visits;

-- Length of stay by DATE_DIFF
SELECT ward, AVG(DATE_DIFF('day', came_on, left_on)) AS stay FROM visits WHERE left_on IS NOT NULL GROUP BY ward;

-- Nights of each quarter
SELECT QUARTER(came_on) AS q, SUM(days) AS nights FROM visits GROUP BY q ORDER BY q;

-- Visits by hour
SELECT HOUR(came_at) AS hour, COUNT(*) AS n FROM visits GROUP BY hour;

-- Visits by hour in Berlin
SELECT HOUR(came_at AT TIME ZONE 'Europe/Berlin') AS hour, COUNT(*) AS n FROM visits GROUP BY hour;

-- Nights and days
SELECT CASE WHEN HOUR(came_at) BETWEEN 6 AND 21 THEN 'day' ELSE 'night' END AS part, COUNT(*) AS n FROM visits GROUP BY part;

-- Diagnoses, which nobody listed
-- @delta
SELECT TRIM(diagnosis) AS diagnosis, COUNT(*) AS n FROM visits GROUP BY 1 ORDER BY n DESC;

-- Fractures
SELECT COUNT(*) AS n FROM visits WHERE diagnosis LIKE 'Fracture%';

-- Acute
SELECT COUNT(*) AS n FROM visits WHERE LOWER(diagnosis) LIKE '%acute';

-- Acute, without regard to case
SELECT COUNT(*) AS n FROM visits WHERE diagnosis ILIKE '%ACUTE';

-- Doctors
-- @delta
SELECT UPPER(SUBSTR(doctor, 5)) AS doctor, AVG(days) AS stay FROM visits GROUP BY 1;

-- Length of texts
-- @refused DP104 AVG(CLAMP(LENGTH(diagnosis), 0, 500))
SELECT AVG(LENGTH(diagnosis)) AS letters FROM visits;
-- @instead
SELECT AVG(CLAMP(LENGTH(diagnosis), 0, 500)) AS letters FROM visits;

-- By sex of patients
SELECT sex, COUNT(*) AS visits FROM visits JOIN patients USING (patient_id) GROUP BY sex;

-- By sex and ward
SELECT p.sex, v.ward, AVG(v.cost) AS cost FROM visits AS v JOIN patients AS p ON v.patient_id = p.patient_id GROUP BY p.sex, v.ward;

-- Age at admission
SELECT AVG(DATE_DIFF('year', born, came_on)) AS age FROM visits JOIN patients USING (patient_id);

-- Age groups at admission
SELECT DATE_DIFF('year', born, came_on) // 20 * 20 AS age, COUNT(*) AS n FROM patients JOIN visits USING (patient_id) GROUP BY age ORDER BY age;

-- Patients without a visit
SELECT COUNT(*) AS n FROM patients LEFT JOIN visits USING (patient_id) WHERE visits.ward IS NULL;

-- Patients without a visit, by NOT IN
SELECT insurance, COUNT(*) AS n FROM patients WHERE patient_id NOT IN (SELECT patient_id FROM visits) GROUP BY insurance;

-- Patients who were in surgery
SELECT region, COUNT(*) AS n FROM patients WHERE patient_id IN (SELECT patient_id FROM visits WHERE ward = 'surgery') GROUP BY region;

-- Patients who were urgent at least once
SELECT COUNT(*) AS n FROM patients p WHERE EXISTS (SELECT 1 FROM visits v WHERE v.patient_id = p.patient_id AND v.urgent);

-- Visits of privately insured patients
SELECT COUNT(*) AS n FROM visits SEMI JOIN patients ON visits.patient_id = patients.patient_id AND patients.insurance = 'private';

-- Visits for each patient
SELECT AVG(n) AS mean FROM (SELECT patient_id, COUNT(*) AS n FROM visits GROUP BY patient_id) AS p;

-- How often patients come
SELECT n, COUNT(*) AS patients FROM (SELECT patient_id, COUNT(*) AS n FROM visits GROUP BY patient_id) AS p GROUP BY n ORDER BY n;

-- Patients who come often
SELECT COUNT(*) AS patients FROM (SELECT patient_id FROM visits GROUP BY patient_id HAVING COUNT(*) >= 5) AS often;

-- Cost of a patient
WITH costs AS (SELECT patient_id, SUM(cost) AS cost, COUNT(*) AS n FROM visits GROUP BY patient_id)
SELECT AVG(cost) AS mean, AVG(cost / n) AS per_visit FROM costs;

-- Cost of a patient by insurance
WITH costs AS (SELECT patient_id, SUM(cost) AS cost FROM visits GROUP BY patient_id)
SELECT insurance, AVG(cost) AS mean FROM patients JOIN costs USING (patient_id) GROUP BY insurance;

-- Patients of several wards
SELECT COUNT(*) AS n FROM (SELECT patient_id, COUNT(DISTINCT ward) AS wards FROM visits GROUP BY patient_id) AS w WHERE wards > 1;

-- First visits of each month
SELECT MONTH(came_on) AS month, COUNT(*) AS newcomers FROM (
  SELECT came_on, ROW_NUMBER() OVER (PARTITION BY patient_id ORDER BY came_at) AS place FROM visits
) AS v WHERE place = 1 GROUP BY month ORDER BY month;

-- Ward of the first visit
SELECT ward, COUNT(*) AS n FROM (
  SELECT * FROM visits QUALIFY ROW_NUMBER() OVER (PARTITION BY patient_id ORDER BY came_at) = 1
) AS first GROUP BY ward;

-- Readmissions within 30 days
SELECT COUNT(*) AS again FROM (
  SELECT came_on, LAG(left_on) OVER (PARTITION BY patient_id ORDER BY came_at) AS before FROM visits
) AS v WHERE came_on - before BETWEEN 0 AND 30;

-- Readmission rate
SELECT AVG(CASE WHEN came_on - before <= 30 THEN 1.0 ELSE 0.0 END) AS rate FROM (
  SELECT came_on, LAG(left_on) OVER (PARTITION BY patient_id ORDER BY came_at) AS before FROM visits
) AS v;

-- Readmission rate by ward
SELECT ward, COUNT(*) FILTER (WHERE next - left_on <= 30) * 1.0 / COUNT(*) AS rate FROM (
  SELECT ward, left_on, LEAD(came_on) OVER (PARTITION BY patient_id ORDER BY came_at) AS next FROM visits
) AS v GROUP BY ward;

-- Days between visits
SELECT AVG(gap) AS gap FROM (
  SELECT came_on - LAG(came_on) OVER (PARTITION BY patient_id ORDER BY came_at) AS gap FROM visits
) AS v;

-- Running cost of a patient
SELECT COUNT(*) AS n FROM (
  SELECT SUM(cost) OVER (PARTITION BY patient_id ORDER BY came_at) AS so_far FROM visits
) AS v WHERE so_far > 10000;

-- Share of a patient's cost
SELECT AVG(cost / total) AS share FROM (
  SELECT CLAMP(cost, 20, 4000) AS cost, CLAMP(SUM(cost) OVER (PARTITION BY patient_id), 20, 100000) AS total FROM visits
) AS v;

-- Retention: came back in another quarter
SELECT COUNT(*) AS n FROM (
  SELECT patient_id, MIN(came_on) AS first, MAX(came_on) AS last FROM visits GROUP BY patient_id
) AS v WHERE QUARTER(first) <> QUARTER(last);

-- Tests of each kind
SELECT kind, COUNT(*) AS n, AVG(result) AS mean FROM tests GROUP BY kind;

-- Tests of each ward
SELECT ward, COUNT(*) AS n FROM visits JOIN tests ON visit_id = visit GROUP BY ward;

-- High results
SELECT kind, COUNT(*) FILTER (WHERE result > 100) * 1.0 / COUNT(result) AS high FROM tests GROUP BY kind;

-- Visits with a test
SELECT COUNT(*) AS n FROM visits WHERE visit_id IN (SELECT visit FROM tests WHERE kind = 'CRP');

-- Tests for each visit
SELECT AVG(n) AS mean FROM (SELECT visit, COUNT(*) AS n FROM tests GROUP BY visit) AS t;

-- Highest result of a visit
SELECT AVG(top) AS mean FROM (SELECT visit, MAX(result) AS top FROM tests GROUP BY visit) AS t WHERE top IS NOT NULL;

-- Three tables
SELECT sex, kind, AVG(result) AS mean FROM patients JOIN visits USING (patient_id) JOIN tests ON visit_id = visit GROUP BY sex, kind;

-- Variance of cost
SELECT ward, STDDEV_POP(cost) AS s FROM visits GROUP BY ward;

-- Median cost
-- @near 0.05
SELECT MEDIAN(cost) AS m FROM visits;

-- Median stay of each ward
-- @near 1
SELECT ward, MEDIAN(days) AS m FROM visits GROUP BY ward;

-- Share of each ward
SELECT ward, COUNT(*) AS n, ROUND(100.0 * COUNT(*) / SUM(COUNT(*)) OVER (), 1) AS percent FROM visits GROUP BY ward ORDER BY percent DESC;

-- Cumulated visits
SELECT MONTH(came_on) AS m, SUM(COUNT(*)) OVER (ORDER BY MONTH(came_on)) AS so_far FROM visits GROUP BY m;

-- Growth from month to month
SELECT MONTH(came_on) AS m, COUNT(*) AS n, COUNT(*) * 1.0 / LAG(COUNT(*)) OVER (ORDER BY MONTH(came_on)) - 1 AS growth FROM visits GROUP BY m;

-- Wards above 200 visits
SELECT ward, COUNT(*) AS n FROM visits GROUP BY ward HAVING COUNT(*) > 200 AND AVG(days) > 1;

-- Two years, of which one is empty
SELECT YEAR(came_on) AS y, COUNT(*) AS n FROM visits GROUP BY y;

-- Visits before noon in spring
SELECT COUNT(*) AS n FROM visits WHERE MONTH(came_on) IN (3, 4, 5) AND HOUR(came_at) < 12;

-- After a moment
SELECT COUNT(*) AS n FROM visits WHERE came_at >= TIMESTAMP '2025-07-01 00:00:00';

-- Within two weeks
SELECT COUNT(*) AS n FROM visits WHERE came_on >= DATE '2025-03-01' AND came_on < DATE '2025-03-01' + INTERVAL '2 weeks';

-- Planned end
SELECT COUNT(*) AS n FROM visits WHERE left_on > came_on + INTERVAL 7 DAY;

-- Two relations below each other
SELECT COUNT(*) AS n FROM (
  SELECT patient_id, days FROM visits WHERE ward = 'surgery' UNION ALL SELECT patient_id, days FROM visits WHERE urgent
) AS u;

-- One patient
-- @refused DP706 COUNT(DISTINCT patient_id)
SELECT AVG(days) FROM visits WHERE patient_id = 7;
-- @instead
SELECT COUNT(DISTINCT patient_id) AS n FROM visits;

-- Costliest patients
-- @refused DP706 COUNT(DISTINCT patient_id)
SELECT patient_id, SUM(cost) AS s FROM visits GROUP BY patient_id ORDER BY s DESC LIMIT 10;
-- @instead
SELECT COUNT(DISTINCT patient_id) AS n FROM visits;

-- Rows with names
-- @refused DP706 COUNT(*)
SELECT ward, doctor FROM visits;
-- @instead
SELECT ward, COUNT(*) AS n FROM visits GROUP BY ward;

-- Patients who share a ward
-- @refused DP703 JOIN visits AS b USING (patient_id)
SELECT COUNT(*) FROM visits a JOIN visits b ON a.ward = b.ward;
-- @instead
SELECT COUNT(*) AS n FROM visits a JOIN visits b ON a.patient_id = b.patient_id AND a.ward = b.ward;

-- Rank among all patients
-- @refused DP702 PARTITION BY patient_id
SELECT AVG(days) FROM (SELECT days, ROW_NUMBER() OVER (ORDER BY cost DESC) AS r FROM visits) AS v WHERE r < 100;
-- @instead
SELECT AVG(days) AS d FROM (SELECT days, ROW_NUMBER() OVER (PARTITION BY patient_id ORDER BY cost DESC) AS r FROM visits) AS v WHERE r < 100;

-- Wards inside
-- @refused DP702 patient_id
SELECT AVG(n) FROM (SELECT ward, COUNT(*) AS n FROM visits GROUP BY ward) AS w;
-- @instead
SELECT AVG(n) AS n FROM (SELECT patient_id, ward, COUNT(*) AS n FROM visits GROUP BY patient_id, ward) AS w;

-- Patients without a visit, by their number
SELECT COUNT(*) AS n FROM patients p LEFT JOIN visits v ON p.patient_id = v.patient_id WHERE v.patient_id IS NULL;

-- Visits of known patients
SELECT COUNT(*) AS n, COUNT(DISTINCT patient_id) AS patients FROM visits WHERE patient_id IS NOT NULL;

-- Patients on both sides
SELECT COUNT(*) AS n FROM patients p FULL JOIN visits v ON p.patient_id = v.patient_id WHERE p.patient_id IS NOT NULL AND v.patient_id IS NULL;

-- Did a patient come
SELECT p.region, SUM(CASE WHEN v.patient_id IS NULL THEN 0 ELSE 1 END) AS came, COUNT(*) AS n
FROM patients p LEFT JOIN (SELECT patient_id, COUNT(*) AS k FROM visits GROUP BY patient_id) v ON p.patient_id = v.patient_id GROUP BY p.region;

-- Visits counted by the patient
SELECT ward, COUNT(patient_id) AS n FROM visits GROUP BY ward;

-- Wards whose name contains a word
SELECT COUNT(*) AS n FROM visits WHERE CONTAINS(ward, 'ology') OR ENDS_WITH(diagnosis, 'acute');

-- Distinct patients who were urgent
-- @refused DP706 put the condition into WHERE
SELECT COUNT(DISTINCT patient_id) FILTER (WHERE urgent) AS n FROM visits;
-- @instead
SELECT COUNT(DISTINCT patient_id) AS n FROM visits WHERE urgent;

-- Visits of each patient, with those who have none
SELECT n, COUNT(*) AS patients FROM (
  SELECT p.patient_id, COUNT(v.patient_id) AS n FROM patients p LEFT JOIN visits v ON v.patient_id = p.patient_id GROUP BY p.patient_id
) AS t GROUP BY n;

-- Patients who are not among those with a visit
-- @refused DP706 1 AS found
SELECT COUNT(*) AS n FROM patients p LEFT JOIN (SELECT DISTINCT patient_id FROM visits) v ON p.patient_id = v.patient_id
WHERE v.patient_id IS NULL;
-- @instead
SELECT COUNT(*) AS n FROM patients p LEFT JOIN (SELECT DISTINCT patient_id, 1 AS found FROM visits) v ON p.patient_id = v.patient_id
WHERE found IS NULL;

-- Distinct diagnoses
SELECT COUNT(DISTINCT ward) AS wards FROM visits;
