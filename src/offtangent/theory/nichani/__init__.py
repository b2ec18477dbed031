"""Nichani, Bai and Lee (2022): what the paper proves, as functions."""

from typing import TYPE_CHECKING

from offtangent._lazy import lazily

if TYPE_CHECKING:
    from offtangent.theory.nichani.assumptions import *
    from offtangent.theory.nichani.blocks import *
    from offtangent.theory.nichani.choice import *
    from offtangent.theory.nichani.covariance import *
    from offtangent.theory.nichani.escape import *
    from offtangent.theory.nichani.feature_alignment import *
    from offtangent.theory.nichani.joint import *
    from offtangent.theory.nichani.landscape import *
    from offtangent.theory.nichani.levels import *
    from offtangent.theory.nichani.regularisers import *
    from offtangent.theory.nichani.risk import *
    from offtangent.theory.nichani.signed import *
    from offtangent.theory.nichani.sparse import *
    from offtangent.theory.nichani.tangent import *

__getattr__, __dir__, __all__ = lazily(
    __name__,
    {
        "assumptions": (
            "BoundedAssumption BoundPart HarmonicAssumption HarmonicPart bounded_assumption harmonic_assumption"
        ),
        "blocks": "Blocks Boundary Level feature_blocks",
        "choice": "RegulariserChoice RegulariserSizes regulariser_choice",
        "covariance": "FeatureCovariance",
        "escape": "Energies Movement furthest",
        "feature_alignment": "Alignment alignment covariance_distance",
        "joint": "JointExpression LinearExpression express_jointly express_low_degree",
        "landscape": "JointLandscape JointStationary",
        "levels": "FiniteLevel finite_levels",
        "regularisers": "R1 R2 R3 R4 RandomisedR1 Regulariser Stacked",
        "risk": "JointRisk",
        "signed": "SignedRegularisers SignMeans sign_energy",
        "sparse": "SparseExpression SphereRidge express_sparse",
        "tangent": "LinearPart TangentFeatures",
    },
)
