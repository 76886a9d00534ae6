"""The list of pairs: whatever its commands name is there, and what is looked for is counted."""

import re
import unittest

from ..cases.sctp_meeting import all_in, judge, shell
from ..cases.sctp_pairs import LANGUAGES, SIGNALLING, TOOLS, Pair, fill
from ..cases.sctp_programs import ADDRESSES

SHARED = ("python", "classes", "chain", "key", "authority", "until", "log")


class Pairs(unittest.TestCase):
    def test_every_name_of_a_command_is_known(self) -> None:
        for pair in (*TOOLS, *LANGUAGES, *SIGNALLING):
            known = {name: name for name in (*ADDRESSES, *SHARED, *(name for name, _ in pair.files))}
            for words in (pair.listens, pair.connects):
                self.assertEqual(re.findall(r"\{\w+\}", fill(words, known)), [], pair.name)

    def test_other_braces_stay(self) -> None:
        self.assertEqual(fill("{ok, A} = f({server})", {"server": "there"}), "{ok, A} = f(there)")

    def test_one_command_takes_the_place_of_the_shell(self) -> None:
        self.assertEqual(shell("socat -u 'a b'"), ["socat", "-u", "a b"])
        self.assertEqual(shell("x $(cat y)"), ["sh", "-c", "exec x $(cat y)"])
        self.assertEqual(shell("x | y"), ["sh", "-c", "x | y"])

    def test_what_is_said_is_counted(self) -> None:
        self.assertTrue(all_in(("2 x ping", "end"), "ping ping end"))
        self.assertFalse(all_in(("2 x ping",), "ping ping ping"))
        self.assertFalse(all_in(("2 x ping", "end"), "ping ping"))
        self.assertTrue(all_in((r"~Bytes: +[1-9]",), "Bytes:   12"))
        self.assertFalse(all_in((r"~Bytes: +[1-9]",), "Bytes:   0"))

    def test_what_is_the_same_comes_in_any_order(self) -> None:
        pair = Pair("", "", "", "", "", same=r"id=(\d+)")
        self.assertTrue(judge(pair, 0, "id=1 id=2", "id=2 id=1")[0])
        self.assertTrue(judge(pair, 0, "id=1 id=2", "id=2")[0])
        self.assertFalse(judge(pair, 0, "id=1 id=2", "id=3 id=2")[0])
        self.assertFalse(judge(pair, 0, "id=1 id=2 id=3", "id=1")[0])
        self.assertFalse(judge(pair, 0, "", "")[0])
