"""The policies that the scenarios of the gate are tried under, as what `hold policy set` takes."""

from __future__ import annotations

POLICIES = {
    "everything": "permit (principal, action, resource);\n",
    "shared": "",
    "held": "",
    "forbidden": "",
    "workspace": "starter:agents-in-workspace",
}
