"""Ge, Wang & Zhao (2019): mildly overparametrised networks memorise."""
