# SPDX-License-Identifier: Apache-2.0
"""Questions to private tables over HTTP."""
