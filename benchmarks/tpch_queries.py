# SPDX-License-Identifier: Apache-2.0
"""The 22 queries of TPC-H about customers: a customer is the privacy unit.

Orders and line items are private and reach their customer through `o_custkey` and `l_orderkey`; the other tables are public.
ANSWERED are the queries, with the days written out, as joins that say what is equal. REFUSED name customers, or compare rows with
those of other customers; beside each stands a question that is answered. PUBLIC ones touch public tables only.
"""

from __future__ import annotations

from datetime import date

import discreet as dp

#: Rows of a customer that count: at scale 1 nobody has more.
AT_MOST = 400
LINKS = {"orders": "o_custkey", "lineitem": "l_orderkey -> orders.o_orderkey"}
PRIVATE, OTHERS = ("customer", "orders", "lineitem"), ("supplier", "part", "partsupp", "nation", "region")
_DAYS = (date(1992, 1, 1), date(1998, 12, 31))
_PRIORITIES = ["1-URGENT", "2-HIGH", "3-MEDIUM", "4-NOT SPECIFIED", "5-LOW"]
_MODES = ["AIR", "FOB", "MAIL", "RAIL", "REG AIR", "SHIP", "TRUCK"]


def columns() -> dict[str, dict[str, dp.Column]]:
    """What the specification says of the columns."""
    day, cents = dp.column(bounds=_DAYS), {"places": 7}
    return {
        "customer": {
            "c_acctbal": dp.column(bounds=(-1000, 10_000), **cents),
            "c_mktsegment": dp.column(
                values=["AUTOMOBILE", "BUILDING", "FURNITURE", "HOUSEHOLD", "MACHINERY"]
            ),
        },
        "orders": {
            "o_orderdate": day,
            "o_orderpriority": dp.column(values=_PRIORITIES),
            "o_shippriority": dp.column(values=[0]),
        },
        "lineitem": {
            "l_quantity": dp.column(bounds=(0, 50), places=0),
            "l_extendedprice": dp.column(bounds=(0, 110_000), **cents),
            "l_discount": dp.column(bounds=(0, 0.1), places=16),
            "l_tax": dp.column(bounds=(0, 0.08), places=16),
            "l_returnflag": dp.column(values=["A", "N", "R"]),
            "l_linestatus": dp.column(values=["F", "O"]),
            "l_shipmode": dp.column(values=_MODES),
            "l_shipdate": day,
            "l_commitdate": day,
            "l_receiptdate": day,
        },
        "partsupp": {"ps_supplycost": dp.column(bounds=(0, 1000), **cents)},
    }


_REVENUE = "SUM(l_extendedprice * (1 - l_discount))"
ANSWERED = {
    1: f"""
        SELECT l_returnflag, l_linestatus, SUM(l_quantity) AS sum_qty, SUM(l_extendedprice) AS sum_base_price,
          {_REVENUE} AS sum_disc_price, SUM(l_extendedprice * (1 - l_discount) * (1 + l_tax)) AS sum_charge,
          AVG(l_quantity) AS avg_qty, AVG(l_extendedprice) AS avg_price, AVG(l_discount) AS avg_disc, COUNT(*) AS count_order
        FROM lineitem WHERE l_shipdate <= DATE '1998-09-02' GROUP BY l_returnflag, l_linestatus""",
    4: """
        SELECT o_orderpriority, COUNT(*) AS order_count FROM orders
        WHERE o_orderdate >= DATE '1993-07-01' AND o_orderdate < DATE '1993-10-01'
          AND EXISTS (SELECT * FROM lineitem WHERE l_orderkey = o_orderkey AND l_commitdate < l_receiptdate)
        GROUP BY o_orderpriority""",
    5: f"""
        SELECT n_name, {_REVENUE} AS revenue FROM customer, orders, lineitem, supplier, nation, region
        WHERE c_custkey = o_custkey AND l_orderkey = o_orderkey AND l_suppkey = s_suppkey AND c_nationkey = s_nationkey
          AND s_nationkey = n_nationkey AND n_regionkey = r_regionkey AND r_name = 'ASIA'
          AND o_orderdate >= DATE '1994-01-01' AND o_orderdate < DATE '1995-01-01' GROUP BY n_name""",
    6: """
        SELECT SUM(l_extendedprice * l_discount) AS revenue FROM lineitem
        WHERE l_shipdate >= DATE '1994-01-01' AND l_shipdate < DATE '1995-01-01'
          AND l_discount > 0.045 AND l_discount < 0.075 AND l_quantity < 24""",
    7: f"""
        SELECT n1.n_name AS supp_nation, n2.n_name AS cust_nation, EXTRACT(YEAR FROM l_shipdate) AS l_year, {_REVENUE} AS revenue
        FROM supplier, lineitem, orders, customer, nation n1, nation n2
        WHERE s_suppkey = l_suppkey AND o_orderkey = l_orderkey AND c_custkey = o_custkey AND s_nationkey = n1.n_nationkey
          AND c_nationkey = n2.n_nationkey AND l_shipdate BETWEEN DATE '1995-01-01' AND DATE '1996-12-31'
          AND n1.n_name IN ('FRANCE', 'GERMANY') AND n2.n_name IN ('FRANCE', 'GERMANY') AND n1.n_name <> n2.n_name
        GROUP BY n1.n_name, n2.n_name, EXTRACT(YEAR FROM l_shipdate)""",
    8: f"""
        SELECT EXTRACT(YEAR FROM o_orderdate) AS o_year,
          SUM(CASE WHEN n2.n_name = 'BRAZIL' THEN l_extendedprice * (1 - l_discount) ELSE 0 END) / {_REVENUE} AS mkt_share
        FROM part, supplier, lineitem, orders, customer, nation n1, nation n2, region
        WHERE p_partkey = l_partkey AND s_suppkey = l_suppkey AND l_orderkey = o_orderkey AND o_custkey = c_custkey
          AND c_nationkey = n1.n_nationkey AND n1.n_regionkey = r_regionkey AND r_name = 'AMERICA' AND s_nationkey = n2.n_nationkey
          AND o_orderdate BETWEEN DATE '1995-01-01' AND DATE '1996-12-31' AND p_type = 'ECONOMY ANODIZED STEEL'
        GROUP BY EXTRACT(YEAR FROM o_orderdate)""",
    9: """
        SELECT n_name, EXTRACT(YEAR FROM o_orderdate) AS o_year,
          SUM(l_extendedprice * (1 - l_discount) - CLAMP(ps_supplycost, 0, 1000) * l_quantity) AS sum_profit
        FROM part, supplier, lineitem, partsupp, orders, nation
        WHERE s_suppkey = l_suppkey AND ps_suppkey = l_suppkey AND ps_partkey = l_partkey AND p_partkey = l_partkey
          AND o_orderkey = l_orderkey AND s_nationkey = n_nationkey AND p_name LIKE '%green%'
        GROUP BY n_name, EXTRACT(YEAR FROM o_orderdate)""",
    12: """
        SELECT l_shipmode,
          SUM(CASE WHEN o_orderpriority IN ('1-URGENT', '2-HIGH') THEN 1 ELSE 0 END) AS high_line_count,
          SUM(CASE WHEN o_orderpriority NOT IN ('1-URGENT', '2-HIGH') THEN 1 ELSE 0 END) AS low_line_count
        FROM orders JOIN lineitem ON o_orderkey = l_orderkey
        WHERE l_shipmode IN ('MAIL', 'SHIP') AND l_commitdate < l_receiptdate AND l_shipdate < l_commitdate
          AND l_receiptdate >= DATE '1994-01-01' AND l_receiptdate < DATE '1995-01-01' GROUP BY l_shipmode""",
    13: """
        SELECT c_count, COUNT(*) AS custdist FROM (
          SELECT c_custkey, COUNT(o_orderkey) AS c_count FROM customer
          LEFT JOIN orders ON c_custkey = o_custkey AND o_comment NOT LIKE '%special%requests%' GROUP BY c_custkey) AS c_orders
        GROUP BY c_count""",
    14: f"""
        SELECT 100 * SUM(CASE WHEN p_type LIKE 'PROMO%' THEN l_extendedprice * (1 - l_discount) ELSE 0 END) / {_REVENUE} AS promo
        FROM lineitem JOIN part ON l_partkey = p_partkey
        WHERE l_shipdate >= DATE '1995-09-01' AND l_shipdate < DATE '1995-10-01'""",
    15: f"""
        SELECT s_suppkey, {_REVENUE} AS total_revenue FROM lineitem JOIN supplier ON s_suppkey = l_suppkey
        WHERE l_shipdate >= DATE '1996-01-01' AND l_shipdate < DATE '1996-04-01'
        GROUP BY s_suppkey ORDER BY total_revenue DESC LIMIT 1""",
    19: f"""
        SELECT {_REVENUE} AS revenue FROM lineitem JOIN part ON p_partkey = l_partkey
        WHERE l_shipmode IN ('AIR', 'REG AIR') AND l_shipinstruct = 'DELIVER IN PERSON' AND (
          p_brand = 'Brand#12' AND p_container IN ('SM CASE', 'SM BOX', 'SM PACK', 'SM PKG')
            AND l_quantity BETWEEN 1 AND 11 AND p_size BETWEEN 1 AND 5
          OR p_brand = 'Brand#23' AND p_container IN ('MED BAG', 'MED BOX', 'MED PKG', 'MED PACK')
            AND l_quantity BETWEEN 10 AND 20 AND p_size BETWEEN 1 AND 10
          OR p_brand = 'Brand#34' AND p_container IN ('LG CASE', 'LG BOX', 'LG PACK', 'LG PKG')
            AND l_quantity BETWEEN 20 AND 30 AND p_size BETWEEN 1 AND 15)""",
    21: """
        SELECT s_name, COUNT(*) AS numwait FROM supplier, lineitem l1, orders, nation
        WHERE s_suppkey = l1.l_suppkey AND o_orderkey = l1.l_orderkey AND o_orderstatus = 'F' AND l1.l_receiptdate > l1.l_commitdate
          AND EXISTS (SELECT * FROM lineitem l2 WHERE l2.l_orderkey = l1.l_orderkey AND l2.l_suppkey <> l1.l_suppkey)
          AND NOT EXISTS (SELECT * FROM lineitem l3 WHERE l3.l_orderkey = l1.l_orderkey AND l3.l_suppkey <> l1.l_suppkey
            AND l3.l_receiptdate > l3.l_commitdate)
          AND s_nationkey = n_nationkey AND n_name = 'SAUDI ARABIA' GROUP BY s_name""",
    # The average is released first, and written into the question: see AVERAGE.
    22: """
        SELECT CASE WHEN c_phone LIKE '13%' THEN '13' WHEN c_phone LIKE '31%' THEN '31' ELSE '23' END AS cntrycode,
          COUNT(*) AS numcust, SUM(c_acctbal) AS totacctbal
        FROM customer WHERE (c_phone LIKE '13%' OR c_phone LIKE '31%' OR c_phone LIKE '23%') AND c_acctbal > {average}
          AND NOT EXISTS (SELECT * FROM orders WHERE o_custkey = c_custkey) GROUP BY 1""",
}
AVERAGE = """
    SELECT AVG(c_acctbal) AS average FROM customer
    WHERE c_acctbal > 0 AND (c_phone LIKE '13%' OR c_phone LIKE '31%' OR c_phone LIKE '23%')"""

#: Each with its code, and a question that is answered instead.
REFUSED = {
    3: (
        f"""SELECT l_orderkey, {_REVENUE} AS revenue, o_orderdate FROM customer, orders, lineitem
        WHERE c_mktsegment = 'BUILDING' AND c_custkey = o_custkey AND l_orderkey = o_orderkey
          AND o_orderdate < DATE '1995-03-15' AND l_shipdate > DATE '1995-03-15'
        GROUP BY l_orderkey, o_orderdate ORDER BY revenue DESC LIMIT 10""",
        f"""SELECT c_mktsegment, {_REVENUE} AS revenue FROM customer, orders, lineitem
        WHERE c_custkey = o_custkey AND l_orderkey = o_orderkey AND o_orderdate < DATE '1995-03-15'
          AND l_shipdate > DATE '1995-03-15' GROUP BY c_mktsegment""",
    ),
    10: (
        f"""SELECT c_custkey, c_name, {_REVENUE} AS revenue FROM customer, orders, lineitem
        WHERE c_custkey = o_custkey AND l_orderkey = o_orderkey AND l_returnflag = 'R' GROUP BY c_custkey, c_name
        ORDER BY revenue DESC LIMIT 20""",
        f"""SELECT n_name, {_REVENUE} AS revenue FROM customer, orders, lineitem, nation
        WHERE c_custkey = o_custkey AND l_orderkey = o_orderkey AND l_returnflag = 'R' AND c_nationkey = n_nationkey GROUP BY n_name""",
    ),
    17: (
        """SELECT SUM(l_extendedprice) / 7.0 AS avg_yearly FROM lineitem, part WHERE p_partkey = l_partkey AND p_brand = 'Brand#23'
          AND p_container = 'MED BOX' AND l_quantity < (SELECT 0.2 * AVG(l_quantity) FROM lineitem WHERE l_partkey = p_partkey)""",
        # 0.2 times the average quantity, which is released first
        """SELECT SUM(l_extendedprice) / 7.0 AS avg_yearly FROM lineitem, part WHERE p_partkey = l_partkey AND p_brand = 'Brand#23'
          AND p_container = 'MED BOX' AND l_quantity < 0.2 * 25.5""",
    ),
    18: (
        """SELECT c_name, o_orderkey, SUM(l_quantity) FROM customer, orders, lineitem
        WHERE o_orderkey IN (SELECT l_orderkey FROM lineitem GROUP BY l_orderkey HAVING SUM(l_quantity) > 300)
          AND c_custkey = o_custkey AND o_orderkey = l_orderkey GROUP BY c_name, o_orderkey""",
        """SELECT COUNT(*) AS orders, SUM(l_quantity) AS quantity FROM orders, lineitem
        WHERE o_orderkey IN (SELECT l_orderkey FROM lineitem GROUP BY l_orderkey HAVING SUM(l_quantity) > 300)
          AND o_orderkey = l_orderkey""",
    ),
    20: (
        """SELECT s_name FROM supplier, partsupp WHERE s_suppkey = ps_suppkey
          AND ps_availqty > (SELECT 0.5 * SUM(l_quantity) FROM lineitem WHERE l_partkey = ps_partkey AND l_suppkey = ps_suppkey)""",
        """SELECT s_suppkey, SUM(l_quantity) AS quantity FROM lineitem JOIN supplier ON l_suppkey = s_suppkey
        WHERE l_shipdate >= DATE '1994-01-01' AND l_shipdate < DATE '1995-01-01' GROUP BY s_suppkey""",
    ),
}
#: They touch public tables only, and are run as they stand: exact, and free.
PUBLIC = {
    2: """
        SELECT s_acctbal, s_name, n_name, p_partkey, p_mfgr, s_address, s_phone, s_comment
        FROM part, supplier, partsupp, nation, region
        WHERE p_partkey = ps_partkey AND s_suppkey = ps_suppkey AND p_size = 15 AND p_type LIKE '%BRASS'
          AND s_nationkey = n_nationkey AND n_regionkey = r_regionkey AND r_name = 'EUROPE'
          AND ps_supplycost = (
            SELECT MIN(ps_supplycost) FROM partsupp, supplier, nation, region
            WHERE p_partkey = ps_partkey AND s_suppkey = ps_suppkey AND s_nationkey = n_nationkey
              AND n_regionkey = r_regionkey AND r_name = 'EUROPE')
        ORDER BY s_acctbal DESC, n_name, s_name, p_partkey LIMIT 100""",
    11: """
        SELECT ps_partkey, SUM(ps_supplycost * ps_availqty) AS value FROM partsupp, supplier, nation
        WHERE ps_suppkey = s_suppkey AND s_nationkey = n_nationkey AND n_name = 'GERMANY' GROUP BY ps_partkey
        HAVING SUM(ps_supplycost * ps_availqty) > (
          SELECT SUM(ps_supplycost * ps_availqty) * 0.0001 FROM partsupp, supplier, nation
          WHERE ps_suppkey = s_suppkey AND s_nationkey = n_nationkey AND n_name = 'GERMANY')
        ORDER BY value DESC, ps_partkey""",
    16: """
        SELECT p_brand, p_type, p_size, COUNT(DISTINCT ps_suppkey) AS supplier_cnt FROM partsupp, part
        WHERE p_partkey = ps_partkey AND p_brand <> 'Brand#45' AND p_type NOT LIKE 'MEDIUM POLISHED%'
          AND p_size IN (49, 14, 23, 45, 19, 3, 36, 9)
          AND ps_suppkey NOT IN (SELECT s_suppkey FROM supplier WHERE s_comment LIKE '%Customer%Complaints%')
        GROUP BY p_brand, p_type, p_size ORDER BY supplier_cnt DESC, p_brand, p_type, p_size""",
}
