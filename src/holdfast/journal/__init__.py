"""The journal: what was done to a session, by whom, as a hash-chained record. It is evidence and is
never executed again. Pure: signing keys, clock and files are in adapters.

    entries.py     what can be recorded
    encoding.py    an entry as bytes: its record, and the record's hash
    framing.py     records in a segment: lengths, checksums, the segment's header
    chain.py       links: who extends the journal, and what each entry is linked to
    signatures.py  what is signed, by which key: binding, seals, head, proofs, discontinuities
    verify.py      is a journal intact? if not, where does it first break and what is still intact
    verify_blocks.py   its fast half: from seal to seal
    verify_records.py  its exact half: record by record
    verdict.py     what it finds
    proof.py       a range of a journal, proven without the rest (N7)
    certificate.py what became of a session over hosts and epochs, on one page
    status.py      continuous, forked, unverifiable, migrated (N8)
    in_flight.py   what was under way when a session was lost (M6)
    lineage.py     discontinued sessions and their successors (N9)
    pruned.py      what stays of a journal that was removed from disk
    reading.py     a journal's files, read entry by entry;  judging.py  the whole judgement of one
    excerpt.py     the records of a range as a separate file

Words: an **entry** is one thing that happened; a **record** is its bytes; a **seal** is an entry by
which the host signs all records since the last seal, the **block**; the **head** is a signed note,
kept beside the journal, of its last synced seal.
"""
