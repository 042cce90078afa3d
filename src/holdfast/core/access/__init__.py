"""Who may do what: pure rules about envelopes, grants and invites.

authority.py         the rights of an actor in a session, now
envelope_book.py     the envelopes that were granted, by scope
presented_grants.py  chains of grants that actors presented
grant_verifier.py    whether a chain of grants counts
invites.py           invites: made, redeemed, expired
rate_limits.py       how much an actor may write per second
user_quotas.py       how much of the host one unix user may use
visibility.py        which sessions exist for an actor
host_rules.py        what each request needs: one row per request
policy_rules.py      who may set a policy of the gate, and what it reaches
inside_rules.py      what a connection from inside a session may do: the same for all behind it
"""
