"""Certificates, as the tests of the transports make them."""

from tests.transports.conftest import certificates

__all__ = ["certificates"]
