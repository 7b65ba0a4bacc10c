# SPDX-License-Identifier: Apache-2.0
"""The explorer page: a model beside the program it was made from."""
