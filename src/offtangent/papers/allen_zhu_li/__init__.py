"""Allen-Zhu and Li (2019): what a residual network learns efficiently and kernels do not."""
