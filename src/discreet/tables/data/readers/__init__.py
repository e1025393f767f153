# SPDX-License-Identifier: Apache-2.0
"""Files and tables of other programs as Arrow tables whose columns do not depend on the rows.

    schema.py                columns and kinds, from a schema alone
    parquet.py, sqlite.py    files that have a schema
    texts.py, lines.py       text files, which have none; casts.py gives each text the kind that the description says
    sound.py                 columns in which every engine can hold every value

No row decides what a column is.
"""

__all__ = ()
