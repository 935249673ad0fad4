"""Texts of the tokenizer tests: sentences in many scripts, and batches of ordinary and of hostile strings."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Final

SENTENCES: Final = {
    "english": "All human beings are born free and equal in dignity and rights. They are endowed with reason and "
    "conscience and should act towards one another in a spirit of brotherhood. It's what we don't do, isn't it?",
    "french": "Tous les êtres humains naissent libres et égaux en dignité et en droits. L’été, où était-il à Noël ? Ça va.",
    "german": "Alle Menschen sind frei und gleich an Würde und Rechten geboren. Straßen, Äpfel, Öl und Übermut: größer!",
    "turkish": "Bütün insanlar hür, haysiyet ve haklar bakımından eşit doğarlar. İstanbul'da ışık ve ılık çay İÇİN.",
    "vietnamese": "Tất cả mọi người sinh ra đều được tự do và bình đẳng về nhân phẩm và quyền lợi.",
    "russian": "Все люди рождаются свободными и равными в своём достоинстве и правах. Ёж и йод — это ещё не всё.",
    "greek": "Όλοι οι άνθρωποι γεννιούνται ελεύθεροι και ίσοι στην αξιοπρέπεια και τα δικαιώματα. ΟΔΥΣΣΕΥΣ ὁ ἄνθρωπος.",
    "arabic": "يولد جميع الناس أحرارا متساوين في الكرامة والحقوق. وقد وهبوا عقلا وضميرا، أليس كذلك؟ مَرْحَبًا ٣٤٥",
    "hebrew": "כל בני האדם נולדו בני חורין ושווים בערכם ובזכויותיהם. שָׁלוֹם עֲלֵיכֶם",
    "hindi": "सभी मनुष्यों को गौरव और अधिकारों के मामले में जन्मजात स्वतन्त्रता और समानता प्राप्त है। १२३ क्षत्रिय",
    "tamil": "மனிதப் பிறிவியினர் சகலரும் சுதந்திரமாகவே பிறக்கின்றனர்; அவர்கள் மதிப்பிலும் உரிமைகளிலும் சமமானவர்கள்.",
    "thai": "มนุษย์ทั้งหลายเกิดมามีอิสระและเสมอภาคกันในเกียรติศักดิ์และสิทธิ ต่างมีเหตุผลและมโนธรรม ๑๒๓",
    "georgian": "ყველა ადამიანი იბადება თავისუფალი და თანასწორი თავისი ღირსებითა და უფლებებით.",
    "amharic": "የሰው ልጅ ሁሉ ሲወለድ ነጻና በክብርና በመብትም እኩልነት ያለው ነው።",
    "chinese": "人人生而自由，在尊严和权利上一律平等。他们赋有理性和良心，并应以兄弟关系的精神互相对待。2024年10月",
    "japanese": "すべての人間は、生まれながらにして自由であり、かつ、尊厳と権利とについて平等である。カタカナ ﾊﾝｶｸ １２３",
    "korean": "모든 인간은 태어날 때부터 자유로우며 그 존엄과 권리에 있어 동등하다. 안녕하세요 각",
    "code": "def f(x: int) -> str:\n\tif x >= 10_000:\n\t\treturn f'{x:,}'  # see https://example.org/a?b=c&d=%20\n\n    pass",
    "numbers": "3.14159 1,000,000 42 007 0x1F 1e-5 12345678901234567890 50% $9.99 №5 ½ ² ⅷ 10:30",
    "emoji": "😀 👍🏽 👩‍👩‍👧‍👦 🏳️‍🌈 🇩🇪🇫🇷 ❤️ ☎ ✈︎ 1️⃣ 🤷🏻‍♀️!",
}  # fmt: skip
"""A text in each script; the tokenizers are trained on them."""

CURIOSITIES: Final = [
    "", " ", "  ", "\t", "\n", "\r\n", "\n\n\n", "   leading", "trailing   ", " both ", "a  b   c    d", "\u00a0nbsp\u00a0", "\u3000wide\u3000",
    "\u180e\u200b\u200d\ufeff", "a\u0301e\u0301\u0323 q\u0307\u0323 \u1e9b\u0323", "\u0301 alone", "ﬁ ﬂ ﬃ Å Å ℌ ① ㎏ ㍿ ﷺ", "\u1100\u1161\u11a8 각 \u1112\u1161\u11ab\u1100\u1173\u11af",
    "\x00", "a\x00b", "\x01\x02\x1b[0m\x7f\x80\x9f", "ß ẞ ς σ Σ ſ K Å ŉ ǰ İ ı ﬀ", "ᏣᎳᎩ ꮳꮃꭹ", "don't DON'T I'LL we've y'all's 'quoted' ''", "?!...,,;;::--__",
    "(a)[b]{c}<d>|e|^f$g*h+i\\j/k~l`m\"n'", "<s></s>[CLS][SEP][PAD][UNK][MASK]<pad><unk><|endoftext|><|im_start|>", "a<s>b </s> c[MASK] d <|endoftext|>  e",
    "<|im_start|>user\nHi<|im_end|>\n<|im_start|>assistant\n", "<0x41><0xE2><0x0A>", "▁▁under▁score▁", "ĠGĊ", "##ing ##", "x" * 120, "é" * 70, "ab" * 300, " " * 200,
    "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", "\U0010ffff\U000e0001\uffff\ufffd", "中文English混合123テスト한국어", "مرحبا hello שלום", "Zürich–Genève—“quoted” ‘single’ «guillemets» …",
    "e\u0301\u0301\u0301\u0301\u0301\u0301\u0301\u0301", "a\u20dd b\u0488", "𝔘𝔫𝔦𝔠𝔬𝔡𝔢 𝟙𝟚𝟛 𝒜", "\ud7a3\uac00", "٠١٢ ۰۱۲ 〇一二", "🀄𠀀𪛖", "i̇İ", "\u2028\u2029\x85\x0b\x0c",
]  # fmt: skip
"""Strings with something odd in each."""

INVALID: Final = [
    b"\xff",
    b"a\xc3",
    b"\xe2\x82",
    b"ok \xf0\x9f\x98 end",
    b"\xed\xa0\x80",
    b"\xc0\xaf",
    b"\xf4\x90\x80\x80",
    b"\x80abc\xbf",
]
"""Bytes that are not UTF-8. For the first three and for the last but one, PCRE2 reads memory beyond the string or beyond
its own tables."""


def long_texts(seed: int) -> list[str]:
    """Return texts of thousands of characters: sentences, a text without spaces, and one of a few letters."""
    rng, texts = random.Random(seed), words(seed)
    return [
        " ".join(next(texts) for _ in range(150)),
        "".join(rng.choice(SENTENCES["chinese"] + SENTENCES["thai"]) for _ in range(2000)).replace(" ", ""),
        "".join(rng.choice("abé▁") for _ in range(3000)),
    ]


def _bytes(rng: random.Random, *ranges: tuple[int, int]) -> bytes:
    return bytes(rng.randint(*own) for own in ranges)


_NEXT: Final = (0x80, 0xBF)


def broken(seed: int) -> Iterator[bytes]:
    """Yield texts with bytes that are not UTF-8 somewhere, each kind in turn.

    The kinds: bytes that continue nothing; sequences of two, three and four bytes that another character breaks off;
    sequences that are longer than need be; surrogates.
    """
    rng, texts = random.Random(seed), words(seed)
    while True:
        odd = [
            _bytes(rng, *[_NEXT] * rng.randint(1, 3)),
            _bytes(rng, (0xC2, 0xDF)),
            _bytes(rng, (0xE0, 0xEF), *[_NEXT] * rng.randint(0, 1)),
            _bytes(rng, (0xF0, 0xF3), *[_NEXT] * rng.randint(0, 2)),
            rng.choice([b"\xc0\xaf", b"\xc1\x81", b"\xe0\x80\xaf", b"\xe0\x81\x81", b"\xf0\x80\x80\xaf"]),
            _bytes(rng, (0xED, 0xED), (0xA0, 0xBF), _NEXT),
        ]
        for data in odd:
            text = next(texts) + "..."  # what a sequence in the middle of the text may swallow
            at = rng.randrange(len(text) - 2)
            yield text[:at].encode() + data + text[at:].encode()


def words(seed: int) -> Iterator[str]:
    """Yield random texts from the words and characters of all scripts."""
    rng = random.Random(seed)
    vocabulary = [word for text in SENTENCES.values() for word in text.split()]
    characters = "".join(SENTENCES.values()) + "".join(CURIOSITIES)
    while True:
        kind = rng.random()
        if kind < 0.5:
            gap = rng.choice([" ", " ", " ", "  ", "", "\n", ", "])
            yield gap.join(rng.choice(vocabulary) for _ in range(rng.randint(1, 12)))
        elif kind < 0.8:
            text = rng.choice(list(SENTENCES.values()))
            start = rng.randrange(len(text))
            yield text[start : start + rng.randint(1, 80)]
        elif kind < 0.95:
            yield "".join(rng.choice(characters) for _ in range(rng.randint(1, 30)))
        else:
            yield rng.choice(CURIOSITIES) + rng.choice(vocabulary) + rng.choice(CURIOSITIES)


def batches(count: int, seed: int = 0) -> list[list[str]]:
    """Return batches of one to four texts: all sentences, all curiosities, long and broken texts, and then random ones.

    A byte that is not UTF-8 is a surrogate, as with ``surrogateescape``.
    """
    rng = random.Random(seed)
    texts, invalid = words(seed), broken(seed)
    known = [*SENTENCES.values(), *CURIOSITIES]
    rng.shuffle(known)
    found = [known[at : at + 2] for at in range(0, len(known), 2)]
    found += [[text] for text in long_texts(seed)]
    for size in (1, 1, 1, 2, 2, 3):
        own = [next(invalid).decode("utf-8", "surrogateescape") for _ in range(size)]
        found.append([*own, *(next(texts) for _ in range(size - 1))])
    while len(found) < count:
        found.append([next(texts) for _ in range(rng.randint(1, 4))])
    return found
