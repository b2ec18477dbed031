"""Arora, Du, Hu, Li, Wang (2019): what H∞ says about how fast, and how well, labels are learnt."""
