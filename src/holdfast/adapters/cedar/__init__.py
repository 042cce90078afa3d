"""Policies in Cedar (cedarpy), and in TOML, which is compiled to Cedar.

schema.py       what a policy may ask about: entities, actions, context
policy_text.py  a text, checked: statements, annotations, with lines for errors
engine.py       a checked text, prepared and asked
toml_rules.py   TOML to Cedar
starters.py     policies that need no writing
"""
