from holdfast.core.vt_boundary import strip_queries as strip_queries
