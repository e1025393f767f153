# SPDX-License-Identifier: Apache-2.0
"""The pages of the server, in HTML; each has a twin in JSON."""
