"""The maps F and G in which W⋆ and V⋆ are looked for (Lemmas D.2, D.3): their series, complexities, and τ_v."""

import numpy as np

from offtangent.theory.allen_zhu_li.concept import series_smoothness

BASE = (0.2, 0.2)  # of F: c_0, c_1
COMPOSITE = (0.0, 0.5)  # of G
TAU_V = 0.6  # 10‖V⋆‖_F, which fixes α
SMOOTH_F, SMOOTH_G = (float(series_smoothness(np.array(one))) for one in (BASE, COMPOSITE))  # 𝔠_s with C* = 1, p = 1
