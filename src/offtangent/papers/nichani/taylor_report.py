def claims(r): return []
def figures(r): return []
