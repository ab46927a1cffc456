"""Fit the function that separates English from other languages in Latin script.

    python -m training.language PREPARED OUT --pairs FOLDER --translations FOLDER

PREPARED is the folder that `training.texts` writes, OUT is `language.npz`. Deterministic, and needs NumPy alone. Each example is a text
or a few words of one. In English examples, names are replaced by foreign ones: they must not decide.
"""

import argparse
import random
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from memplane.models.language import SIZE, features_of, words_of
from training.data import read_json, read_text
from training.texts import LANGUAGES as COLUMNS

LANGUAGES = ("en", "de", "fr", "es", "pt", "it", "nl")
"""Those in Latin script. Other scripts need no function."""
_SEED = 7
_TECHNICAL_MAX = 16_000
_TECHNICAL_ENGLISH_MAX = 60_000
_DIALOGUES_MAX = 60_000
_EVERYDAY_TIMES = 4
_TOKENS_MAX = 40
_CROPS = (1, 1, 2, 3, 5)
"""Mostly single words: in whole texts, a few function words would decide, and content words would get any weight."""
_RENAMED = 0.5
_BATCH = 2_048
_EPOCHS = 3
_RATE = 0.02
_L2 = 2e-6
_BIAS = 1.0
"""Fixed: without evidence, a text counts as English."""
_DOUBT = 1.0
"""Added after the fit: if unsure, English."""
_STEPS = 127

OTHERS = {
    "pl": "nie to się w na i z do jest że co jak po ale tak za od o już czy mnie mi moja mój moje mam masz jestem była był "
    "będzie lubię pracuję mieszkam dlaczego gdzie kiedy który która przez przed tylko jeszcze bardzo dziękuję proszę dzień "
    "dobry wczoraj jutro dzisiaj mieszkanie rodzina siostra brat urodziny lekarz praca szkoła kupić zrobić napisać może "
    "trzeba chcę wiem mogę jego jej nasz wszystko nigdy zawsze kawa herbata wolę uczulenie orzechy",
    "sv": "och att det i en jag är som på inte för med den har till av om så men du mig min mitt mina hon han vi de var när hur "
    "vad varför vem ska kan vill måste skulle bor jobbar arbetar gillar tycker heter från här där nu redan aldrig alltid "
    "också bara lite mycket tack hej idag igår imorgon syster bror mamma pappa födelsedag läkare arbete skola köpa göra "
    "skriva behöver lägenhet kaffe dricker allergisk nötter barn hund katt vilken något någon efter innan",
    "da": "og at det i en jeg er som på ikke for med den har til af om så men du mig min mit mine hun han vi de var når hvordan "
    "hvad hvorfor hvem skal kan vil må skulle bor arbejder kan lide synes hedder fra her der nu allerede aldrig altid også "
    "kun lidt meget tak hej dag går morgen søster bror mor far fødselsdag læge arbejde skole købe gøre skrive behøver "
    "lejlighed kaffe drikker allergisk nødder børn hund kat hvilken noget nogen efter før",
    "no": "og at det i en jeg er som på ikke for med den har til av om så men du meg min mitt mine hun han vi de var når hvordan "
    "hva hvorfor hvem skal kan vil må skulle bor jobber liker synes heter fra her der nå allerede aldri alltid også bare "
    "litt mye takk hei dag går morgen søster bror mamma pappa bursdag lege arbeid skole kjøpe gjøre skrive trenger "
    "leilighet kaffe drikker allergisk nøtter barn hund katt hvilken noe noen etter før",
    "fi": "ja on ei se että en hän minä sinä olen olet oli mutta kun niin mitä missä miksi milloin kuka mikä minun sinun hänen "
    "meidän asun työskentelen pidän haluan voin pitää täytyy kanssa vielä nyt jo aina koskaan myös vain paljon kiitos hei "
    "tänään eilen huomenna sisko veli äiti isä syntymäpäivä lääkäri työ koulu ostaa tehdä kirjoittaa tarvitsen asunto "
    "kahvi juon allerginen pähkinät lapset koira kissa joka jotain ennen jälkeen kaupungissa",
    "cs": "a se na je že to v s z do o ale jak po za jsem jsi jsme byl byla bude co kde kdy proč kdo který která moje můj mám "
    "máš chci mohu musím bydlím pracuji mám rád ráda ještě už teď nikdy vždy také jen trochu velmi děkuji ahoj dnes včera "
    "zítra sestra bratr matka otec narozeniny lékař práce škola koupit udělat napsat potřebuji byt káva piju alergie "
    "ořechy děti pes kočka něco někdo před protože není jeho její naše všechno",
    "sk": "a sa na je že to v s z do o ale ako po za som si sme bol bola bude čo kde kedy prečo kto ktorý ktorá moja môj mám máš "
    "chcem môžem musím bývam pracujem mám rád rada ešte už teraz nikdy vždy tiež len trochu veľmi ďakujem ahoj dnes včera "
    "zajtra sestra brat matka otec narodeniny lekár práca škola kúpiť urobiť napísať potrebujem byt káva pijem alergia "
    "orechy deti pes mačka niečo niekto pred pretože nie jeho jej naše všetko",
    "hu": "a az és hogy nem is egy van volt de mint meg csak már még én te ő mi vagyok vagy leszek mit hol mikor miért ki melyik "
    "lakom dolgozom szeretem akarok tudok kell nekem neki most soha mindig nagyon kicsit köszönöm szia ma tegnap holnap "
    "nővérem testvérem anyám apám születésnap orvos munka iskola venni csinálni írni lakás kávé iszom allergiás dió "
    "gyerekek kutya macska valami valaki előtt után vele ezt azt",
    "ro": "și în de la cu nu că este sunt a fost pe un o care pentru mai dar din sau eu tu el ea noi mea meu mele am ai are ce "
    "unde când cum cine care locuiesc lucrez îmi place vreau pot trebuie acum deja niciodată întotdeauna și doar puțin "
    "foarte mulțumesc bună azi ieri mâine soră frate mamă tată ziua naștere doctor muncă școală cumpăra face scrie "
    "apartament cafea beau alergic nuci copii câine pisică ceva cineva înainte după pentru că",
    "tr": "ve bir bu da de için ne ben sen o biz var yok değil çok daha ama gibi ile mi mı kadar sonra önce benim senin onun "
    "nerede ne zaman nasıl neden kim hangi oturuyorum çalışıyorum seviyorum istiyorum yapabilirim gerekiyor şimdi hiç her "
    "zaman sadece biraz teşekkürler merhaba bugün dün yarın kız kardeşim erkek annem babam doğum günü doktor iş okul "
    "almak yapmak yazmak ihtiyacım daire kahve içiyorum alerjim fındık çocuklar köpek kedi bir şey birisi",
    "id": "yang dan di ini itu dengan untuk dari tidak saya aku kamu dia kami kita ada akan pada ke juga sudah bisa karena apa "
    "mana kapan bagaimana kenapa siapa tinggal bekerja suka ingin harus sekarang pernah selalu hanya sedikit sangat terima "
    "kasih halo hari kemarin besok adik kakak ibu ayah ulang tahun dokter pekerjaan sekolah membeli membuat menulis perlu "
    "rumah kopi minum alergi kacang anak anjing kucing sesuatu seseorang sebelum sesudah lebih",
    "vi": "và của là có không tôi bạn anh chị em cô ấy họ chúng ta được cho với này đó những một các đã đang sẽ ở trong ngoài gì "
    "đâu khi nào tại sao ai nào sống làm việc thích muốn phải bây giờ rồi chưa luôn cũng chỉ rất cảm ơn xin chào hôm nay qua "
    "ngày mai gái trai mẹ bố sinh nhật bác sĩ công việc trường mua viết cần căn hộ cà phê uống dị ứng hạt trẻ con chó mèo",
    "ca": "i el la els les de que a no és un una en per amb però com més va ser sóc ets som jo tu ell ella nosaltres meva meu tinc "
    "tens què on quan per què qui quin visc treballo m'agrada vull puc cal ara ja mai sempre també només una mica molt "
    "gràcies hola avui ahir demà germana germà mare pare aniversari metge feina escola comprar fer escriure necessito pis "
    "cafè bec al·lèrgia nous fills gos gat alguna algú abans després",
    "hr": "i u je da se na za ne su od s što kako ali sam si smo bio bila bit će gdje kada zašto tko koji koja moja moj imam imaš "
    "želim mogu moram živim radim volim još već sada nikad uvijek također samo malo vrlo hvala bok danas jučer sutra sestra "
    "brat majka otac rođendan liječnik posao škola kupiti napraviti napisati trebam stan kava pijem alergija orasi djeca "
    "pas mačka nešto netko prije poslije jer nije njegov njezin naš sve",
    "de": "hallo danke bitte ja nein moin servus tschüss genau doch mein meine ich du wir wo wann warum wer wie was womit weiß "
    "Geburtstag Arbeit Schwester Kaffee lieber Adresse Passwort Termin morgen heute gestern Urlaub Wohnung Nüsse allergisch",
    "fr": "bonjour salut merci oui non voilà mon ma mes je tu nous où quand pourquoi qui comment quoi c'est j'ai j'aime "
    "anniversaire travail sœur café adresse rendez-vous demain aujourd'hui hier vacances appartement noix allergique",
    "es": "hola gracias sí por favor buenos días mi mis yo tú nosotros dónde cuándo por qué quién cómo qué soy tengo me gusta "
    "cumpleaños trabajo hermana café dirección contraseña cita mañana hoy ayer vacaciones piso nueces alérgico",
    "pt": "olá obrigado obrigada sim não por favor bom dia meu minha meus eu você nós onde quando por que quem como o que sou "
    "tenho gosto aniversário trabalho irmã café endereço senha consulta amanhã hoje ontem férias apartamento nozes alérgico",
    "it": "ciao grazie sì no per favore buongiorno mio mia miei io tu noi dove quando perché chi come che cosa sono ho mi piace "
    "compleanno lavoro sorella caffè indirizzo appuntamento domani oggi ieri vacanze appartamento noci allergico",
    "nl": "hallo dank je bedankt alsjeblieft ja nee mijn ik jij wij waar wanneer waarom wie hoe wat ben heb vind leuk verjaardag "
    "werk zus koffie adres wachtwoord afspraak morgen vandaag gisteren vakantie appartement noten allergisch",
}
"""Frequent words of languages without texts, and a few more of those with."""
ENGLISH = (
    "hi", "hello", "hey", "thanks", "thank you", "thx", "ok", "okay", "yes", "no", "yeah", "nope", "sure", "please", "bye",
    "good morning", "good night", "cool", "great", "nice", "wow", "lol", "haha", "hmm", "huh", "help", "stop", "continue",
    "go on", "why", "who am I", "what is my job", "where do I live", "when is my birthday", "any update", "remind me",
    "tell me a joke", "summarize this", "explain", "translate", "fix it", "try again", "never mind", "got it", "my name",
    "do it", "pets", "work", "allergies", "home address", "partner", "coffee order", "shoe size", "wifi password",
    "deploy to staging", "run the tests", "merge conflict", "null pointer exception", "stack trace", "unit tests",
    "see ya", "see ya tomorrow", "gotta go", "pet", "pets", "is it a pet", "me", "I am", "is it on", "so be it", "die hard",
    "an ad", "in", "on", "a", "to do", "as is", "sole", "come", "pain",
    "comment", "location", "chat", "band", "kind", "gift", "hat", "war", "also", "will", "man", "an", "am", "so", "was",
    "brief", "arm", "hand", "fast", "bald", "rock", "see", "tag", "note", "route", "menu", "animal", "hotel", "radio",
    "data", "file", "email", "server", "backup", "login", "token", "cache", "docker compose", "git push origin main",
    "volcano", "beverages", "favorite color", "celsius to fahrenheit", "lgtm", "todo list", "center a div", "lorem ipsum",
    "al dente", "per se", "espresso macchiato", "Los Angeles", "San Francisco", "La La Land", "El Paso", "Las Vegas",
    "Costa Rica", "Rio de Janeiro", "Buenos Aires", "Puerto Rico", "Santa Fe", "vim", "emacs", "sushi", "pizza", "pasta",
    "gelato", "taxi", "sport", "yoga", "opera", "vegan", "c'est la vie",
    "Trattoria da Luigi", "Chez Pierre", "Café de Flore", "La Dolce Vita", "ha ha", "get em", "ad hoc", "vice versa", "de facto",
)  # fmt: skip
"""Short texts, many of which could be of another language."""
NAMES = """María José García Fernández Núñez Muñoz Sánchez López Martínez González Rodríguez Peña Íñigo Begoña Javier Joaquín Alejandro
Guadalupe Concepción Jesús Andrés Nicolás Sebastián Ximena Beatriz Inês João Gonçalves Magalhães Conceição Araújo Simões Guimarães
Antônio Luísa Tiago Rui François Geneviève Élodie Chloé Zoé Jérôme Benoît Guillaume Céline Amélie Thérèse Anaïs Hélène Étienne
Dubois Lefèvre Lemaître Beauchamp Jean-Luc Bordeaux Marseille Montréal Québec Versailles Jürgen Günther Björn Jörg Käthe Müller
Schröder Schäfer Weiß Groß Köhler Krüger Böhm Wolfgang Heinrich Friedrich Liesel Annegret Düsseldorf Köln München Nürnberg
Zürich Österreich Giuseppe Giovanni Francesca Alessandro Giulia Matteo Lorenzo Chiara Beppe Ferrari Esposito Bianchi Napoli Firenze
Venezia Trastevere Lamborghini Ristorante Gnocchi Tagliatelle Jeroen Sjoerd Maarten Annelies Wouter Pieter Marijke Joost Willemijn
Vandenberghe Hoogeveen Eindhoven Utrecht Scheveningen Wojciech Krzysztof Małgorzata Łukasz Agnieszka Grzegorz Kowalczyk Wiśniewski
Łódź Kraków Gdańsk Wrocław Søren Bjørn Åse Øyvind Mette Kjærsgaard Ångström Malmö Göteborg Tromsø Reykjavík Sigurðsson Guðrún
Jyväskylä Mäkinen Virtanen Aino Väinö Dvořák Jiří Tomáš Božena Novák Plzeň Škoda István László Erzsébet Nagy Szabó Győr Debrecen
Ștefan Ceaușescu Ionuț București Cluj Mehmet Ayşe Çağlar Özgür Yıldız Erdoğan Şahin İstanbul Diyarbakır Nguyễn Trần Phạm Hoàng
Thảo Hà Nội Đà Nẵng Suharto Yogyakarta Wulandari Priyanka Subramaniam Venkatesh Lakshmi Rajesh Chaudhary Hyderabad Bengaluru
Takahashi Yamamoto Hiroshi Sakura Shinjuku Hokkaido Kyoto Xiaoming Zhang Zhongguo Guangzhou Shenzhen Qingdao Jae-won Ji-hoon Park
Seo-yeon Busan Abdulrahman Mohammed Fatima Khalid Yousef Al-Hakim Marrakech Chukwuemeka Adebayo Ngozi Oluwaseun Nairobi Kilimanjaro
Kubernetes PostgreSQL Nginx Ubuntu Debian Grafana Prometheus Terraform Ansible Jenkins Elasticsearch Kibana Django Symfony Laravel
Vue Nuxt Figma Spotify Ikea Renault Peugeot Volkswagen Porsche Nestlé Häagen-Dazs L'Oréal Citroën Beyoncé Björk Motörhead Pelé Mbappé
Cabernet Sauvignon Rioja Barolo Chianti Prosecco Camembert Gruyère Croissant Jalapeño Quesadilla Burrito Paella Tapas Schnitzel
Sauerkraut Bratwurst Oktoberfest Zeitgeist Siesta Fiesta Sombrero Piñata Crème Brûlée Pâté Soufflé Entrecôte Carbonara Tiramisù"""
"""Names of people, places and things that occur in English texts."""
_NAMES = NAMES.split()

Example = tuple[list[str], bool]
"""The words of a text, and whether it is English."""


def main(prepared: Path, out: Path, pairs: Path, translations: Path) -> None:
    chance = random.Random(_SEED)
    found = [
        *technical_texts(prepared, chance),
        *everyday_texts(translations),
        *dialogue_texts(pairs, chance),
        *_short(chance),
        *lexicon_words(translations),
    ]
    examples = [example for text, english in found for example in _examples(text, chance, english=english)]
    chance.shuffle(examples)
    weights = _fit(examples)
    scale = float(np.abs(weights).max()) / _STEPS
    steps = np.rint(weights / scale).astype(np.int8)
    np.savez_compressed(out, steps=steps, scale=np.float32(scale), bias=np.float32(_BIAS + _DOUBT))
    print(f"{len(examples):,} examples, {np.count_nonzero(steps):,} weights, {out.stat().st_size:,} bytes")


def technical_texts(folder: Path, chance: random.Random) -> Iterator[tuple[str, bool]]:
    """Package descriptions and manuals. Some translations are still the English text."""
    english: list[str] = read_json(folder / "texts.json.gz")
    rows: list[dict[str, str]] = read_json(folder / "multilingual" / "translations.json.gz")
    untranslated = frozenset(english).union(row["en"] for row in rows)
    for language in LANGUAGES:
        own = english
        if language != "en":
            own = [row[language] for row in rows if row.get(language, row["en"]) not in untranslated]
        limit = _TECHNICAL_ENGLISH_MAX if language == "en" else _TECHNICAL_MAX
        for text in chance.sample(own, min(len(own), limit)):
            yield text, language == "en"


def everyday_texts(folder: Path) -> Iterator[tuple[str, bool]]:
    """The written memories and questions, several times each: there are fewer of them than of technical texts."""
    for path in sorted(folder.glob("languages*.json*")):
        for row in read_json(path):
            for language in LANGUAGES:
                for text in row.get(language, {}).values():
                    for _ in range(_EVERYDAY_TIMES):
                        yield text, language == "en"


def dialogue_texts(folder: Path, chance: random.Random) -> list[tuple[str, bool]]:
    """English conversations."""
    texts = [
        turn["text"]
        for path in sorted(folder.glob("*.json*"))
        for dialogue in read_json(path)["dialogues"]
        for turn in dialogue
    ]
    return [(text, True) for text in chance.sample(texts, min(len(texts), _DIALOGUES_MAX))]


def _short(chance: random.Random) -> Iterator[tuple[str, bool]]:
    for words in OTHERS.values():
        listed = words.split()
        for _ in range(1_500):
            yield " ".join(chance.sample(listed, chance.randint(2, 7))), False
        for word in listed:
            yield word.capitalize(), False
    for text in ENGLISH:
        for _ in range(60):
            yield text, True
            yield text.capitalize(), True
    for _ in range(20_000):
        yield " ".join(chance.choices(_NAMES, k=chance.randint(1, 3))), True


def lexicon_words(folder: Path) -> Iterator[tuple[str, bool]]:
    """Words in every language, except those that are the same in English."""
    for path in sorted(folder.glob("lexicon*.tsv*")):
        for line in read_text(path).splitlines():
            cells = dict(zip(COLUMNS, line.split("\t"), strict=False))
            for language in LANGUAGES:
                if cells.get(language) and (language == "en" or cells[language] != cells["en"]):
                    for _ in range(_EVERYDAY_TIMES):
                        yield cells[language], language == "en"


def _examples(text: str, chance: random.Random, *, english: bool) -> Iterator[Example]:
    """The text, and some words of it."""
    tokens = text.split()[:_TOKENS_MAX]
    if english and chance.random() < _RENAMED:
        tokens = tokens[:1] + [
            chance.choice(_NAMES) if token[:1].isupper() and len(token) > 1 else token for token in tokens[1:]
        ]
    words = [word for token in tokens for word in words_of(token)]
    if words:
        yield words, english
        for length in _CROPS:
            start = chance.randrange(max(1, len(words) - length + 1))
            yield words[start : start + length], english


def _fit(examples: Sequence[Example]) -> NDArray[np.float32]:
    """Logistic regression by Adam. Both classes weigh the same."""
    known = {
        word: place for place, word in enumerate(dict.fromkeys(w for words, _ in examples for w in words))
    }
    spelt = [np.array(features_of(word), np.int32) for word in known]
    share = sum(english for _, english in examples) / len(examples)
    weights, mean, square = (np.zeros(SIZE, np.float32) for _ in range(3))
    chance = np.random.default_rng(_SEED)
    step = 0
    for _ in range(_EPOCHS):
        order = chance.permutation(len(examples))
        for begin in range(0, len(order), _BATCH):
            chosen = [examples[place] for place in order[begin : begin + _BATCH]]
            rows = [spelt[known[word]] for words, _ in chosen for word in words]
            per_text = [sum(len(spelt[known[word]]) for word in words) for words, _ in chosen]
            places, texts = np.concatenate(rows), np.repeat(np.arange(len(chosen)), per_text)
            wanted = np.array([english for _, english in chosen], np.float32)
            logits = np.bincount(texts, weights[places], len(chosen)) + _BIAS
            wrong = 1.0 / (1.0 + np.exp(-logits)) - wanted
            wrong *= np.where(wanted > 0, 0.5 / share, 0.5 / (1.0 - share)) / len(chosen)
            slope = np.bincount(places, wrong[texts], SIZE) + _L2 * weights
            step += 1
            mean = 0.9 * mean + 0.1 * slope
            square = 0.999 * square + 0.001 * slope**2
            rate = _RATE * np.sqrt(1 - 0.999**step) / (1 - 0.9**step)
            weights -= (rate * mean / (np.sqrt(square) + 1e-8)).astype(np.float32)
    return weights


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("prepared", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("--pairs", type=Path, required=True, help="conversations with questions")
    parser.add_argument("--translations", type=Path, required=True, help="the written rows and words")
    given = parser.parse_args()
    main(given.prepared, given.out, given.pairs, given.translations)
