"""What measures, trains and judges. The engine itself imports nothing from here."""
