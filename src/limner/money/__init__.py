"""Quote, reserve, settle: the only writer of the ledger."""
