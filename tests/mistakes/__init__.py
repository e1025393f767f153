# SPDX-License-Identifier: Apache-2.0
"""What beginners write, and whether the error that they get helps them."""
