# SPDX-License-Identifier: Apache-2.0
"""A Spark session, and its settings."""

from __future__ import annotations

import shutil
import sys

import pytest


@pytest.fixture(scope="session")
def spark_session():
    """One session for all files: a test that changes its settings puts them back."""
    sql = pytest.importorskip("pyspark.sql")
    if shutil.which("java") is None:
        pytest.skip("Spark needs Java")
    settings = {
        "spark.ui.enabled": "false",
        "spark.log.level": "OFF",
        "spark.ui.showConsoleProgress": "false",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.sql.shuffle.partitions": "2",
        "spark.sql.adaptive.enabled": "false",
        "spark.sql.codegen.wholeStage": "false",  # compiling takes longer than a few rows do
        "spark.sql.codegen.factoryMode": "NO_CODEGEN",
        "spark.sql.session.timeZone": "America/Los_Angeles",  # nothing depends on it
    }
    builder = sql.SparkSession.builder.master("local[2]")
    for name, value in settings.items():
        builder = builder.config(name, value)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYSPARK_PYTHON", sys.executable)  # for functions in Python
        session = builder.getOrCreate()
    yield session
    session.stop()


@pytest.fixture
def setting(spark_session):
    """Change settings of the session for a while."""
    before = {}

    def change(name, value):
        before.setdefault(name, spark_session.conf.get(name, None))
        spark_session.conf.set(name, value)

    yield change
    for name, value in before.items():
        spark_session.conf.unset(name) if value is None else spark_session.conf.set(name, value)
