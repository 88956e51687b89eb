"""The round: ingest, draft, verify, accept; run by the host or by the device alone."""
