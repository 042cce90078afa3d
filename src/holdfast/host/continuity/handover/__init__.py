"""A session that is asleep or was lost goes on at another host, by `hold restore --on`.

    source                                       target
    Offer: what is known of it              ->
                                            <-   Wanted, or Failed
    the checkpoint; its files; Whole        ->   all of it aside, and checked
                                            <-   Ready, or Failed
    writes down that it is the target's
    Yours                                   ->   takes it for its own, restores it
                                            <-   Done; or GaveBack, and nothing of it is left there

From the moment in which the source has written down whose it is, it restores it only on the word of
somebody that the target is dead. So however links break and daemons die, at most one of the two
restores it. What was cut is carried on by asking once more.

messages.py       what the two say to each other
session_files.py  journal and other files of a session, from one host's disk to the other's
source.py         the host that it leaves
target.py         the host that it comes to
"""
