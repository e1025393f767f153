-- Questions of a shop. A customer is protected with all orders, and with the items of these orders.

-- Orders
SELECT COUNT(*) AS n FROM orders;

-- Turnover
SELECT SUM(total) AS turnover, AVG(total) AS mean FROM orders WHERE status <> 'cancelled';

-- Turnover of each month
SELECT DATE_TRUNC('month', ordered_at) AS month, SUM(total) AS turnover FROM orders GROUP BY month ORDER BY month;

-- Orders of each day of a week
SELECT CAST(ordered_at AS DATE) AS d, COUNT(*) AS n FROM orders
WHERE ordered_at >= TIMESTAMP '2024-05-06 00:00:00' AND ordered_at < TIMESTAMP '2024-05-13 00:00:00' GROUP BY d;

-- Status
SELECT status, COUNT(*) AS n, COUNT(*) * 1.0 / SUM(COUNT(*)) OVER () AS share FROM orders GROUP BY status;

-- Coupons
SELECT coupon, COUNT(*) AS n FROM orders WHERE coupon IS NOT NULL GROUP BY coupon;

-- With and without a coupon
SELECT coupon IS NOT NULL AS used, AVG(total) AS mean FROM orders GROUP BY used;

-- Customers
SELECT COUNT(DISTINCT customer_id) AS buyers FROM orders;

-- Customers of each country
SELECT country, COUNT(*) AS n FROM customers GROUP BY country ORDER BY n DESC;

-- Turnover of each country
SELECT country, SUM(total) AS turnover FROM orders JOIN customers USING (customer_id) GROUP BY country;

-- Buyers of each country
SELECT c.country, COUNT(DISTINCT o.customer_id) AS buyers FROM customers c JOIN orders o ON o.customer_id = c.customer_id GROUP BY c.country;

-- Conversion: customers with an order
-- @refused DP702 FROM customers JOIN orders USING (customer_id)
SELECT country, COUNT(*) FILTER (WHERE customer_id IN (SELECT customer_id FROM orders)) AS buyers FROM customers GROUP BY country;
-- @instead
SELECT country, COUNT(DISTINCT customer_id) AS buyers FROM customers JOIN orders USING (customer_id) GROUP BY country;

-- Customers without an order
SELECT COUNT(*) AS n FROM customers LEFT JOIN orders USING (customer_id) WHERE orders.status IS NULL;

-- Customers without an order, by ANTI JOIN
SELECT COUNT(*) AS n FROM customers ANTI JOIN orders USING (customer_id);

-- Orders of each customer
SELECT AVG(n) AS mean FROM (SELECT customer_id, COUNT(*) AS n FROM orders GROUP BY customer_id) AS c;

-- Orders of each customer, with those who have none
SELECT n, COUNT(*) AS customers FROM (
  SELECT c.customer_id, COUNT(o.order_id) AS n FROM customers c LEFT JOIN orders o ON o.customer_id = c.customer_id GROUP BY c.customer_id
) AS t GROUP BY n ORDER BY n;

-- Customer value
WITH value AS (SELECT customer_id, SUM(total) AS spent FROM orders WHERE status = 'paid' GROUP BY customer_id)
SELECT CASE WHEN spent < 200 THEN 'small' WHEN spent < 600 THEN 'middle' ELSE 'large' END AS class, COUNT(*) AS n FROM value GROUP BY class;

-- Largest order of each customer
SELECT AVG(top) AS mean FROM (SELECT customer_id, MAX(total) AS top FROM orders GROUP BY customer_id) AS t;

-- Repeat buyers
SELECT AVG(CASE WHEN n > 1 THEN 1.0 ELSE 0.0 END) AS share FROM (SELECT customer_id, COUNT(*) AS n FROM orders GROUP BY customer_id) AS c;

-- First orders by month
SELECT MONTH(first) AS month, COUNT(*) AS newcomers FROM (SELECT customer_id, MIN(ordered_at) AS first FROM orders GROUP BY customer_id) AS f GROUP BY month;

-- Value of the second order
SELECT AVG(total) AS mean FROM (
  SELECT total, ROW_NUMBER() OVER (PARTITION BY customer_id ORDER BY ordered_at) AS place FROM orders
) AS o WHERE place = 2;

-- Days to the second order
SELECT AVG(days) AS mean FROM (
  SELECT CAST(ordered_at AS DATE) - CAST(LAG(ordered_at) OVER (PARTITION BY customer_id ORDER BY ordered_at) AS DATE) AS days,
    ROW_NUMBER() OVER (PARTITION BY customer_id ORDER BY ordered_at) AS place FROM orders
) AS o WHERE place = 2;

-- Growing orders
SELECT COUNT(*) AS n FROM (SELECT total, LAG(total) OVER (PARTITION BY customer_id ORDER BY ordered_at) AS before FROM orders) AS o
WHERE total > before;

-- Items sold
SELECT SUM(quantity) AS items, SUM(quantity * price) AS value FROM items;

-- Value of each category
SELECT category, SUM(quantity * price) AS value FROM items JOIN products USING (product_id) GROUP BY category;

-- Discount against the list
SELECT AVG(list_price - price) AS discount FROM items JOIN products USING (product_id);

-- Products, which are public
SELECT product_id, COUNT(*) AS n FROM items JOIN products USING (product_id) GROUP BY product_id ORDER BY n DESC LIMIT 5;

-- Value of an order
SELECT AVG(value) AS mean FROM (SELECT order_id, SUM(quantity * price) AS value FROM items GROUP BY order_id) AS o;

-- Items of an order
SELECT n, COUNT(*) AS orders FROM (SELECT order_id, COUNT(*) AS n FROM items GROUP BY order_id) AS o GROUP BY n ORDER BY n;

-- Orders without items
SELECT COUNT(*) AS n FROM orders LEFT JOIN items ON orders.order_id = items.order_id WHERE items.quantity IS NULL;

-- Orders with a toy
SELECT COUNT(*) AS n FROM orders WHERE order_id IN (
  SELECT order_id FROM items JOIN products USING (product_id) WHERE category = 'toy'
);

-- Items of cancelled orders
SELECT SUM(quantity) AS n FROM items JOIN orders ON items.order_id = orders.order_id WHERE status = 'cancelled';

-- Country and category
SELECT country, category, SUM(quantity) AS n FROM customers JOIN orders USING (customer_id) JOIN items USING (order_id)
JOIN products USING (product_id) GROUP BY country, category;

-- Newsletter
SELECT newsletter, AVG(total) AS mean FROM customers JOIN orders USING (customer_id) GROUP BY newsletter;

-- Days from joining to ordering
SELECT AVG(CAST(ordered_at AS DATE) - joined) AS days FROM orders JOIN customers USING (customer_id);

-- Cohorts
SELECT DATE_TRUNC('quarter', joined) AS cohort, COUNT(DISTINCT customer_id) AS buyers FROM customers JOIN orders USING (customer_id) GROUP BY cohort;

-- Orders in the evening
SELECT HOUR(ordered_at) >= 18 AS evening, COUNT(*) AS n FROM orders GROUP BY evening;

-- Hours of Vienna
SELECT HOUR(ordered_at AT TIME ZONE 'Europe/Vienna') AS hour, COUNT(*) AS n FROM orders GROUP BY hour;

-- By name, tidied
-- @delta
SELECT UPPER(name) AS name, COUNT(*) AS n FROM customers GROUP BY 1;

-- First names
-- @delta
SELECT LOWER(LEFT(name, 3)) AS first, COUNT(*) AS n FROM customers GROUP BY first;

-- Text that begins so
SELECT COUNT(*) AS n FROM customers WHERE STARTS_WITH(name, 'Ann');

-- Text by parts
SELECT COUNT(*) AS n FROM customers WHERE CONCAT(LOWER(country), '-', CASE WHEN newsletter THEN 'y' ELSE 'n' END) = 'at-y';

-- Replaced text
-- @refused DP705 SUBSTR(name, 1, 2)
SELECT COUNT(*) AS n FROM customers WHERE REPLACE(name, ' ', '') LIKE 'Cy%';
-- @instead
SELECT COUNT(*) AS n FROM customers WHERE SUBSTR(name, 1, 2) = 'Cy';

-- A month later than joining
SELECT COUNT(*) AS n FROM customers JOIN orders USING (customer_id) WHERE CAST(ordered_at AS DATE) < joined + INTERVAL 1 YEAR;

-- Share of turnover by quarter
SELECT QUARTER(ordered_at) AS q, SUM(total) * 100.0 / SUM(SUM(total)) OVER () AS percent FROM orders GROUP BY q;

-- Pareto of countries
SELECT country, SUM(total) AS t, SUM(SUM(total)) OVER (ORDER BY SUM(total) DESC) AS so_far FROM orders JOIN customers USING (customer_id) GROUP BY country;

-- Best month of each country
SELECT country, MONTH(ordered_at) AS month, SUM(total) AS t FROM orders JOIN customers USING (customer_id) GROUP BY country, month
QUALIFY ROW_NUMBER() OVER (PARTITION BY country ORDER BY SUM(total) DESC) = 1;

-- Order sizes
SELECT total // 100 * 100 AS size, COUNT(*) AS n FROM orders GROUP BY size ORDER BY size;

-- Distinct products of a customer
SELECT AVG(k) AS mean FROM (
  SELECT customer_id, COUNT(DISTINCT product_id) AS k FROM orders JOIN items USING (order_id) GROUP BY customer_id
) AS c;

-- Active in both halves of the year
SELECT COUNT(*) AS n FROM customers
WHERE customer_id IN (SELECT customer_id FROM orders WHERE MONTH(ordered_at) <= 6)
  AND customer_id IN (SELECT customer_id FROM orders WHERE MONTH(ordered_at) > 6);

-- Middle order
-- @near 3
SELECT MEDIAN(total) AS m FROM orders;

-- Percentiles of orders
-- @near 0.03
SELECT QUANTILE_CONT(total, 0.05) AS low, QUANTILE_CONT(total, 0.95) AS high FROM orders;

-- Weighted price
SELECT SUM(quantity * price) / SUM(quantity) AS mean FROM items;

-- Sum of values of each kind once
-- @refused DP706 leave DISTINCT out
SELECT SUM(DISTINCT total) FROM orders;
-- @instead
SELECT SUM(total) AS s FROM orders;

-- The best customer
-- @refused DP706 COUNT(DISTINCT customer_id)
SELECT customer_id, SUM(total) AS t FROM orders GROUP BY customer_id ORDER BY t DESC LIMIT 1;
-- @instead
SELECT COUNT(DISTINCT customer_id) AS n FROM orders;

-- Orders as keys
-- @refused DP704 leave order_id out of GROUP BY
SELECT order_id, COUNT(*) FROM items GROUP BY order_id;
-- @instead
SELECT COUNT(*) AS n FROM items;

-- A change
-- @refused DP702 SELECT
DELETE FROM orders WHERE status = 'cancelled';
-- @instead
SELECT COUNT(*) AS n FROM orders WHERE status <> 'cancelled';

-- Public tables only
SELECT category, COUNT(*) AS n FROM products GROUP BY category;

-- Public tables only, with all of SQL
SELECT category, product_id FROM products WHERE product_id IN (SELECT MIN(product_id) FROM products GROUP BY category) ORDER BY 1 LIMIT 3;

-- Products of each category, and items of each
SELECT category, COUNT(*) AS n FROM items JOIN products USING (product_id) GROUP BY category;

-- Customers without an order, by their number
SELECT country, COUNT(*) AS n FROM customers LEFT JOIN orders USING (customer_id) WHERE orders.customer_id IS NULL GROUP BY country;

-- Names in any case
SELECT COUNT(*) AS n FROM customers WHERE name ILIKE 'BOB%' OR name NOT ILIKE '%moe';

-- Orders from two queries
WITH a AS (SELECT customer_id, 'paid' AS kind, total FROM orders WHERE status = 'paid'),
  b AS (SELECT customer_id, 'other' AS kind, total FROM orders WHERE status <> 'paid')
SELECT kind, COUNT(*) AS n, SUM(total) AS t FROM (SELECT * FROM a UNION ALL SELECT * FROM b) AS u GROUP BY kind;

-- How many products were sold
SELECT COUNT(DISTINCT product_id) AS sold FROM items JOIN products USING (product_id);

-- Covariance of quantity and price
SELECT COVAR_POP(quantity, price) AS c, COVAR_SAMP(quantity, price) AS s FROM items;
