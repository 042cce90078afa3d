from holdfast.core.vt_boundary import strip_queries as strip_queries
from holdfast.core.vt_boundary import find_queries as find_queries
