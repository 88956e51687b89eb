"""Which rounds a server's stream tells, a file for each way of telling them."""
