def claims(r, l):
    return []


def figures(r, l):
    return []
