-- Questions about flights. A plane is protected with all its flights.

-- All flights
SELECT COUNT(*) AS n FROM flights;

-- By carrier
SELECT carrier, COUNT(*) AS n FROM flights GROUP BY carrier ORDER BY n DESC;

-- By the name of the carrier
SELECT name, COUNT(*) AS n FROM flights JOIN airlines USING (carrier) GROUP BY name;

-- By the name, as older SQL writes it
SELECT a.name, AVG(f.distance) AS miles FROM flights f, airlines a WHERE f.carrier = a.carrier GROUP BY a.name;

-- From which state
SELECT state, COUNT(*) AS n FROM flights JOIN airports ON origin = code GROUP BY state;

-- From where to where
SELECT o.city AS start, d.city AS finish, COUNT(*) AS n
FROM flights f JOIN airports o ON f.origin = o.code JOIN airports d ON f.dest = d.code GROUP BY start, finish;

-- Destinations that nobody listed
-- @delta
SELECT dest, COUNT(*) AS n FROM flights GROUP BY dest;

-- Routes that nobody listed
-- @delta
SELECT origin, dest, AVG(arr_delay) AS late FROM flights GROUP BY origin, dest HAVING COUNT(*) > 60;

-- Mean delay
SELECT AVG(dep_delay) AS departure, AVG(arr_delay) AS arrival FROM flights;

-- Mean delay of those that are late
SELECT carrier, AVG(arr_delay) AS late FROM flights WHERE arr_delay > 0 GROUP BY carrier;

-- Share of delays
SELECT carrier, AVG(CASE WHEN arr_delay > 15 THEN 1.0 ELSE 0.0 END) AS share FROM flights WHERE NOT cancelled GROUP BY carrier;

-- Share of cancellations by month
SELECT EXTRACT(MONTH FROM day) AS month, AVG(CAST(cancelled AS INTEGER)) AS share FROM flights GROUP BY month ORDER BY month;

-- Flights of each month
SELECT DATE_TRUNC('month', day) AS month, COUNT(*) AS n FROM flights GROUP BY month ORDER BY month;

-- Flights of each quarter
SELECT DATE_TRUNC('quarter', day) AS quarter, COUNT(*) AS n, SUM(distance) AS miles FROM flights GROUP BY quarter;

-- Flights of each week
SELECT DATE_TRUNC('week', off) AS week, COUNT(*) AS n FROM flights GROUP BY week ORDER BY week LIMIT 10;

-- Weekday
SELECT ISODOW(day) AS weekday, COUNT(*) AS n, AVG(dep_delay) AS late FROM flights GROUP BY weekday;

-- Weekday, Sunday first
-- @refused DP705 ISODOW(day)
SELECT DAYOFWEEK(day) AS weekday, COUNT(*) AS n FROM flights GROUP BY weekday;
-- @instead
SELECT ISODOW(day) AS weekday, COUNT(*) AS n FROM flights GROUP BY weekday;

-- Hour of departure
SELECT EXTRACT(HOUR FROM off) AS hour, COUNT(*) AS n FROM flights GROUP BY hour ORDER BY hour;

-- Hour of departure in New York
SELECT EXTRACT(HOUR FROM off AT TIME ZONE 'America/New_York') AS hour, COUNT(*) AS n FROM flights GROUP BY hour;
-- @plain
SELECT EXTRACT(HOUR FROM off AT TIME ZONE 'UTC' AT TIME ZONE 'America/New_York') AS hour, COUNT(*) AS n FROM flights GROUP BY hour;

-- Each day of June
SELECT CAST(off AS DATE) AS d, COUNT(*) AS n FROM flights WHERE day BETWEEN DATE '2013-06-01' AND DATE '2013-06-30' GROUP BY d;

-- ISO week
SELECT EXTRACT(WEEK FROM day) AS week, COUNT(*) AS n FROM flights WHERE day >= '2013-02-01' AND day < '2013-03-01' GROUP BY week;

-- Last thirty days of the year
SELECT COUNT(*) AS n FROM flights WHERE day > DATE '2013-12-31' - INTERVAL 30 DAY;

-- Weekends
SELECT ISODOW(day) IN (6, 7) AS weekend, AVG(dep_delay) AS late FROM flights GROUP BY weekend;

-- Morning, afternoon, evening
SELECT CASE WHEN HOUR(off) < 12 THEN 'morning' WHEN HOUR(off) < 18 THEN 'afternoon' ELSE 'evening' END AS part, COUNT(*) AS n
FROM flights GROUP BY part;

-- Speed
SELECT AVG(distance / (CLAMP(air_time, 20, 600) / 60)) AS mph FROM flights;

-- Total miles over total hours
SELECT carrier, SUM(distance) / SUM(air_time) * 60 AS mph FROM flights WHERE air_time IS NOT NULL GROUP BY carrier;

-- Made up in the air
SELECT AVG(dep_delay - arr_delay) AS gained FROM flights;

-- Median delay
-- @near 2
SELECT MEDIAN(arr_delay) AS m FROM flights;

-- Planes
SELECT COUNT(DISTINCT tailnum) AS planes FROM flights;

-- Planes of each carrier
SELECT carrier, COUNT(DISTINCT tailnum) AS planes, COUNT(*) AS flights FROM flights GROUP BY carrier;

-- Flights for each plane
SELECT COUNT(*) * 1.0 / COUNT(DISTINCT tailnum) AS each FROM flights;

-- Mean flights of a plane
-- @near 1
SELECT AVG(n) AS mean, MAX(n) AS most FROM (SELECT tailnum, COUNT(*) AS n FROM flights GROUP BY tailnum) AS p WHERE tailnum IS NOT NULL;

-- Mean flights of a plane, without a condition
SELECT AVG(n) AS mean FROM (SELECT tailnum, COUNT(*) AS n FROM flights WHERE tailnum IS NOT NULL GROUP BY tailnum) AS p;

-- How many planes fly how often
WITH often AS (SELECT tailnum, COUNT(*) AS n FROM flights WHERE tailnum IS NOT NULL GROUP BY tailnum)
SELECT n, COUNT(*) AS planes FROM often GROUP BY n ORDER BY n;

-- Busy planes
SELECT COUNT(*) AS busy FROM (SELECT tailnum FROM flights WHERE tailnum IS NOT NULL GROUP BY tailnum HAVING COUNT(*) > 12) AS b;

-- Miles of a plane
SELECT AVG(miles) AS mean FROM (SELECT tailnum, SUM(distance) AS miles FROM flights WHERE tailnum IS NOT NULL GROUP BY tailnum) AS m;

-- Worst delay of each plane
SELECT AVG(worst) AS mean FROM (SELECT tailnum, MAX(arr_delay) AS worst FROM flights WHERE tailnum IS NOT NULL GROUP BY tailnum) AS w;

-- First flight of each plane
SELECT EXTRACT(MONTH FROM first) AS month, COUNT(*) AS planes
FROM (SELECT tailnum, MIN(day) AS first FROM flights WHERE tailnum IS NOT NULL GROUP BY tailnum) AS f GROUP BY month;

-- Where planes fly first
SELECT origin, COUNT(*) AS n FROM (
  SELECT origin, ROW_NUMBER() OVER (PARTITION BY tailnum ORDER BY off) AS place FROM flights WHERE tailnum IS NOT NULL
) AS f WHERE place = 1 GROUP BY origin;

-- Days between flights of a plane
SELECT AVG(gap) AS days FROM (
  SELECT day - LAG(day) OVER (PARTITION BY tailnum ORDER BY off) AS gap FROM flights WHERE tailnum IS NOT NULL
) AS g WHERE gap IS NOT NULL;

-- Delays after a delay
SELECT AVG(CASE WHEN dep_delay > 15 THEN 1 ELSE 0 END) AS share FROM (
  SELECT dep_delay, LAG(arr_delay) OVER (PARTITION BY tailnum ORDER BY off) AS before FROM flights WHERE tailnum IS NOT NULL
) AS d WHERE before > 30;

-- With planes
SELECT maker, COUNT(*) AS n, AVG(arr_delay) AS late FROM flights JOIN planes USING (tailnum) GROUP BY maker;

-- With planes, older ones
SELECT COUNT(*) AS n FROM flights f JOIN planes p ON f.tailnum = p.tailnum WHERE p.year < 2000;

-- Age of planes in flight
SELECT AVG(2013 - year) AS age FROM flights LEFT JOIN planes USING (tailnum);

-- Planes alone
SELECT maker, COUNT(*) AS planes, AVG(seats) AS seats FROM planes GROUP BY maker;

-- Planes by decade
SELECT year // 10 * 10 AS decade, COUNT(*) AS n FROM planes WHERE year IS NOT NULL GROUP BY decade;

-- Planes that flew to the west
SELECT COUNT(*) AS n FROM planes WHERE tailnum IN (SELECT tailnum FROM flights WHERE dest = 'SFO');

-- Planes that never flew
SELECT COUNT(*) AS n FROM planes p WHERE NOT EXISTS (SELECT 1 FROM flights f WHERE f.tailnum = p.tailnum);

-- Large planes that were cancelled
SELECT COUNT(*) AS n FROM planes p WHERE seats > 200 AND EXISTS (SELECT 1 FROM flights f WHERE f.tailnum = p.tailnum AND f.cancelled);

-- Passengers at most
SELECT SUM(seats) AS seats FROM flights JOIN planes USING (tailnum) WHERE NOT cancelled;

-- Change from month to month
SELECT MONTH(day) AS month, COUNT(*) AS n, COUNT(*) - LAG(COUNT(*)) OVER (ORDER BY MONTH(day)) AS change FROM flights GROUP BY month;

-- Moving average
SELECT MONTH(day) AS month, AVG(COUNT(*)) OVER (ORDER BY MONTH(day) ROWS BETWEEN 2 PRECEDING AND CURRENT ROW) AS smooth
FROM flights GROUP BY month;

-- Best carrier of each airport
SELECT origin, carrier, COUNT(*) AS n FROM flights GROUP BY origin, carrier
QUALIFY RANK() OVER (PARTITION BY origin ORDER BY COUNT(*) DESC) = 1;

-- Long and short
SELECT distance > 1000 AS far, AVG(air_time) AS minutes, COUNT(*) AS n FROM flights WHERE air_time > 0 GROUP BY far;

-- Distances in bands
SELECT WIDTH_BUCKET(distance, 0, 3000, 6) AS band, COUNT(*) AS n FROM flights GROUP BY band;
-- @plain
SELECT CASE WHEN distance >= 3000 THEN 7 ELSE distance // 500 + 1 END AS band, COUNT(*) AS n FROM flights GROUP BY band;

-- Airports in the north
SELECT COUNT(*) AS n FROM flights JOIN airports ON dest = code WHERE lat > 40;

-- Two legs of the same plane
SELECT COUNT(*) AS n FROM flights a JOIN flights b ON a.tailnum = b.tailnum AND a.dest = b.origin AND a.day = b.day AND a.off < b.off;

-- Distinct destinations of a plane
SELECT AVG(places) AS mean FROM (
  SELECT tailnum, COUNT(DISTINCT dest) AS places FROM flights WHERE tailnum IS NOT NULL GROUP BY tailnum
) AS d;

-- Seconds in the air
SELECT SUM(air_time * 60) AS seconds FROM flights WHERE carrier = 'UA';

-- Delay classes
SELECT CASE WHEN arr_delay IS NULL THEN 'unknown' WHEN arr_delay <= 0 THEN 'early' WHEN arr_delay <= 30 THEN 'late' ELSE 'very late' END AS class,
  COUNT(*) AS n FROM flights GROUP BY 1 ORDER BY 2 DESC;

-- Each plane by name
-- @refused DP706 COUNT(DISTINCT tailnum)
SELECT tailnum, COUNT(*) FROM flights GROUP BY tailnum;
-- @instead
SELECT COUNT(DISTINCT tailnum) AS planes FROM flights;

-- One plane
-- @refused DP706 COUNT(DISTINCT tailnum)
SELECT COUNT(*) FROM flights WHERE tailnum = 'N001';
-- @instead
SELECT COUNT(DISTINCT tailnum) AS planes FROM flights;

-- A list of planes
-- @refused DP706 COUNT(DISTINCT tailnum)
SELECT COUNT(*) FROM flights WHERE tailnum IN ('N001', 'N002');
-- @instead
SELECT COUNT(DISTINCT tailnum) AS planes FROM flights;

-- All pairs with airports
-- @refused DP703 JOIN airports ON flights.
SELECT COUNT(*) FROM flights CROSS JOIN airports;
-- @instead
SELECT COUNT(*) AS n FROM flights JOIN airports ON origin = code;

-- Today
-- @refused DP702 DATE
SELECT COUNT(*) FROM flights WHERE day > CURRENT_DATE - 30;
-- @instead
SELECT COUNT(*) FROM flights WHERE day > DATE '2013-12-01' - 30;

-- Correlation of delays
SELECT CORR(dep_delay, arr_delay) AS r FROM flights;
