"""A kernel that is not of this house, with no more than a Gram matrix asks for."""


class Linear:
    name = "linear"

    def __call__(self, X1, X2):
        return X1 @ X2.T

    def diag(self, X):
        return (X * X).sum(axis=1)

    def exact(self, X1, X2=None):
        return X1 @ (X1 if X2 is None else X2).T
