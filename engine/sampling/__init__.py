"""The target's samples, and the counter-based noise behind them."""
