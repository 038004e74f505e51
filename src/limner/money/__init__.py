"""Quotes, reservations, settlements: the only writer of the ledger."""
