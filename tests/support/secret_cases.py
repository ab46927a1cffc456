"""Secrets as their providers' documentation describes them, made at run time: nothing here has the form of one.

A case is a template: `{hex:40}` stands for forty random hexadecimal digits. `carried` puts a secret into a chat message,
an env file, a log line or source code; `is_held_out` splits the cases into two halves.
"""

import base64
import hashlib
import json
import random
import re
import string

_ALPHABETS = {
    "digit": string.digits,
    "hex": "0123456789abcdef",
    "lower": string.ascii_lowercase + string.digits,
    "upper": string.ascii_uppercase + string.digits,
    "alnum": string.ascii_letters + string.digits,
    "url": string.ascii_letters + string.digits + "_-",
    "b64": string.ascii_letters + string.digits + "+/",
}
_HOLE = re.compile(r"\{([a-z0-9]+)(?::([0-9]+))?\}")

_TEMPLATES = """
sk-proj-{url:74}T3Blbk{x}FJ{url:74}
sk-svcacct-{url:58}T3Blbk{x}FJ{url:58}
sk-ant-{x}api03-{url:93}AA
sk-ant-{x}admin01-{url:93}AA
sk-or-v1-{hex:64}
sk-lf-{uuid}
gsk_{alnum:52}
xai-{alnum:80}
pplx-{alnum:48}
hf_{alnum:34}
r8_{alnum:37}
nvapi-{url:64}
pcsk_{alnum:6}_{alnum:63}
lsv2_pt_{hex:32}_{hex:10}
tvly-dev-{alnum:32}
fc-{hex:32}
csk-{lower:48}
fw_{alnum:24}
tgp_v1_{url:43}
jina_{hex:32}{alnum:28}
pa-{url:43}
llx-{alnum:48}
e2b_{hex:40}
dtn_{hex:64}
ak-{alnum:22}
pylf_v1_us_{alnum:43}
crsr_{hex:64}
m0-{alnum:40}
rpa_{upper:42}
ghp_{alnum:36}
gho_{alnum:36}
ghu_{alnum:36}
ghs_{alnum:36}
ghs_{digit:6}_{jwt}
ghr_{alnum:76}
github_pat_{digit:2}{alnum:20}_{alnum:59}
glpat-{url:20}
glpat-{url:27}.01.{lower:9}
gldt-{url:20}
glrt-{url:20}
glptt-{hex:40}
glft-{url:20}
gloas-{hex:64}
glcbt-{digit:2}_{url:20}
ATATT3x{url:186}={hex:8}
ATBB{alnum:32}
sgp_{hex:16}_{hex:40}
sgp_{hex:40}
npm_{alnum:36}
pypi-AgEIcHlwaS5vcmc{url:140}
rubygems_{hex:48}
oy2{lower:43}
cio{alnum:32}
CLOJARS_{lower:60}
packagist_uut_{hex:68}
ovsxat_{uuid}
dckr_pat_{url:27}
dckr_oat_{url:32}
AKCp{alnum:69}
cmVmdGtu{alnum:56}
squ_{hex:40}
CCIPAT_{alnum:22}_{hex:40}
bkua_{hex:40}
perm:{b64:12}.{b64:8}.{b64:30}
API-{upper:26}
AKIA{upper:16}
ASIA{upper:16}
IQoJb3JpZ2lu{b64:300}
da2-{lower:26}
AIza{url:35}
ya29.{url:140}
GOCSPX-{url:28}
1//0{url:90}
GOOG1E{upper:55}
dop_v1_{hex:64}
doo_v1_{hex:64}
DO00{upper:16}
LTAI5t{alnum:18}
AKID{alnum:32}
AKLT{alnum:43}
AQVN{url:36}
SCW{upper:17}
cfut_{alnum:48}
HRKU-AA{url:58}
fm2_{b64:200}
vcp_{alnum:56}
vck_{alnum:56}
nfp_{alnum:36}
rnd_{alnum:32}
ddp_{alnum:36}
sbp_{hex:40}
sb_secret_{url:22}_{alnum:8}
pscale_tkn_{url:43}
pscale_pw_{url:43}
napi_{lower:64}
npg_{alnum:12}
AVNS_{url:19}
CCDB1_{alnum:22}_{alnum:40}
mdb_sa_sk_{url:40}
4b1d{alnum:38}
mzp_{hex:64}
dapi{hex:32}
dapi{hex:32}-2
dbtc_{url:40}
essu_{b64:60}
sha256~{url:43}
hvs.{url:90}
hvs.{url:24}
hvb.{url:140}
dp.pt.{alnum:43}
dp.st.prd.{alnum:43}
st.{hex:24}.{hex:32}.{hex:32}
ops_eyJ{b64:250}
A3-{upper:6}-{upper:11}-{upper:5}-{upper:5}-{upper:5}
AGE-SECRET-KEY-1{upper:58}
tskey-auth-{alnum:17}-{alnum:32}
tskey-api-{alnum:17}-{alnum:33}
nbp_{alnum:36}
pul-{hex:40}
ico-{alnum:32}
xoxb-{digit:12}-{digit:13}-{alnum:24}
xoxp-{digit:12}-{digit:12}-{digit:13}-{hex:32}
xapp-1-A{upper:10}-{digit:13}-{hex:64}
xoxe.xoxp-1-{alnum:166}
SK{hex:32}
SG.{url:22}.{url:43}
key-{hex:32}
mlsn.{hex:64}
xkeysib-{hex:64}-{alnum:16}
xsmtpsib-{hex:64}-{alnum:16}
re_{alnum:8}_{alnum:24}
os_v2_app_{lower:103}
sk_live_{alnum:24}
rk_live_{alnum:99}
whsec_{alnum:32}
sq0atp-{url:22}
shpat_{hex:32}
shpss_{hex:32}
shippo_live_{hex:40}
EZAK{alnum:54}
FLWSECK-{hex:32}-X
duffel_test_{url:43}
access-production-{uuid}
pdl_live_apikey_{lower:26}_{alnum:22}_{alnum:3}
polar_oat_{alnum:43}
rzp_live_{alnum:14}
xnd_production_{alnum:48}
live_{alnum:30}
live_{hex:35}
access_token$production${lower:16}${hex:32}
ntn_{digit:11}{alnum:35}
lin_api_{alnum:40}
figd_{url:40}
pat{alnum:14}.{hex:64}
1/{digit:16}:{hex:32}
2/{digit:16}/{digit:16}:{hex:32}
pk_{digit:8}_{upper:32}
CFPAT-{url:43}
tfp_{url:44}_{url:14}
pat-na1-{uuid}
1000.{hex:32}.{hex:32}
00D{alnum:12}!{alnum:90}
sl.{url:135}
p8e-{alnum:32}
fio-u-{url:64}
rdme_{lower:70}
PMAK-{hex:24}-{hex:34}
apify_api_{alnum:36}
tr_prod_{alnum:24}
EAAG{alnum:170}
waka_{uuid}
sk.eyJ{alnum:70}.{url:22}
glc_{b64:120}
glsa_{alnum:32}_{hex:8}
NRAK-{upper:27}
sntrys_{b64:120}
sntryu_{hex:64}
dt0c01.{upper:24}.{upper:64}
phx_{alnum:43}
pat.{url:22}.{hex:24}.{alnum:20}
pnu_{alnum:36}
hcaik_{lower:58}
xaat-{uuid}
sdk-{uuid}
{hex:32}-us14
{hex:10}msh{hex:15}p1{hex:6}jsn{hex:12}
{alnum:6}_{alnum:29}_mmk
xprv{alnum:107}
nsec1{lower:58}
{jwt}
{pem:RSA}
{pem:OPENSSH}
{pem:PGP}
{putty}
"""
TEMPLATES = _TEMPLATES.split()

_BEFORE_VALUE = (
    ("my password is ", "{mixed:10}", ", keep it safe"),
    ("The wifi password for the office is ", "{mixed:11}", "."),
    ("pw ", "{mixed:12}", " if you need it"),
    ("das Passwort lautet ", "{mixed:10}", ""),
    ("Das Kennwort ist ", "{mixed:11}", "."),
    ("le mot de passe est ", "{mixed:10}", ", merci"),
    ("la contraseña es ", "{mixed:10}", ""),
    ("a senha do wifi é ", "{mixed:10}", ""),
    ("la password è ", "{mixed:12}", " adesso"),
    ("het wachtwoord is ", "{mixed:10}", "."),
    ("hasło to ", "{mixed:10}", ""),
    ("hasło: ", "{mixed:10}", ""),
    ("şifre: ", "{mixed:10}", ""),
    ("пароль от почты: ", "{mixed:10}", ""),
    ("мой пароль ", "{mixed:10}", ", не забудь"),
    ("密码是", "{mixed:10}", "，别告诉别人"),
    ("パスワードは", "{mixed:10}", "です"),
    ("비밀번호는 ", "{mixed:10}", "입니다"),
    ("كلمة المرور هي ", "{mixed:10}", ""),
    ("पासवर्ड है ", "{mixed:10}", ""),
    ("lösenordet är ", "{mixed:10}", "."),
    ("heslo je ", "{mixed:10}", ""),
    ("use the key ", "{alnum:32}", " for the demo"),
    ("here is the token ", "{alnum:40}", " thanks"),
    ("mein Schlüssel ist ", "{alnum:32}", ""),
    ("machine api.example.com login bob password ", "{mixed:12}", "\n"),
    ("Connect-Thing -User bob -Password ", "{mixed:12}", " -Force"),
    ("tool deploy --token ", "{alnum:32}", " --yes"),
    ("mysql -u root -p", "{mixed:10}", " shop"),
    ("sshpass -p ", "{mixed:10}", " ssh bob@host"),
    ("docker login -u bob -p ", "{mixed:12}", " registry.example.com"),
    ("postgres://app:", "{mixed:14}", "@db.example.com:5432/app"),
    ("https://", "{alnum:40}", ":x-oauth-basic@git.example.com/a/b.git"),
    ("https://bob:", "{mixed:12}", "@git.example.com/a/b.git"),
    ("Server=db;User Id=sa;Password=", "{mixed:14}", ";Encrypt=true"),
    ("Authorization: Bearer ", "{url:48}", "\r\n"),
    ("Cookie: theme=dark; sid=", "{alnum:32}", "; lang=en"),
    ("Set-Cookie: session=", "{hex:40}", "; Path=/; HttpOnly"),
    ("https://hooks.slack.com/services/", "T{upper:8}/B{upper:8}/{alnum:24}", " posts there"),
    ("https://discord.com/api/webhooks/{digit:18}/", "{url:68}", ""),
    ("https://hooks.zapier.com/hooks/catch/", "{digit:7}/{lower:7}", "/"),
    ("AWS_SECRET_ACCESS_KEY=", "{b64:40}", "\n"),
    ("AZURE_STORAGE_KEY=", "{b64:86}==", "\n"),
    ("password: '", "{mixed:16}", "'\n"),
    ('{"client_secret": "', "{url:40}", '"}'),
    ("[mail]\npassword = ", "{mixed:12}", "\n"),
    ("DB_PASSWORD=", "{mixed:8};{mixed:6}&{mixed:4}", "\n"),
    ("PRIVATE_KEY=", "{b64:1600}", "\n"),
    ("https://bot.example.com/bot{digit:10}:", "AA{url:33}", "/sendMessage"),
    ("openssl pkcs12 -in a.p12 -passin pass:", "{mixed:12}", " -nodes"),
)
"""Text before, secret, text after: secrets that are one because of where they stand."""

CARRIERS = {
    "chat": ("Sure, here you go: ", " - tell me if it works."),
    "env": ("REGION=eu-west-1\nTHING_VALUE=", "\nDEBUG=1\n"),
    "log": ("2026-03-04T05:06:07Z INFO worker[3] sent ", " in 12 ms"),
    "code": ('def connect():\n    return Client("', '", timeout=3)\n'),
}


def _encoded(text):
    return base64.urlsafe_b64encode(text.encode()).decode().rstrip("=")


def _fill(name, length, rng):
    def take(alphabet, count):
        return "".join(rng.choices(_ALPHABETS[alphabet], k=count))

    if name in _ALPHABETS:
        return take(name, length) if length < 2 or name in {"digit", "hex"} else _varied(take, name, length)
    if name == "mixed":
        return take("alnum", length - 4) + rng.choice("!#%*+") + "a7" + rng.choice("BCDF")
    if name == "uuid":
        return "-".join(take("hex", count) for count in (8, 4, 4, 4, 12))
    if name == "jwt":
        parts = (json.dumps({"alg": "RS256", "typ": "JWT"}), json.dumps({"sub": take("alnum", 9), "exp": 1}))
        return ".".join([*map(_encoded, parts), take("url", 342)])
    return {"x": ""}[name]


def _varied(take, name, length):
    """As random tokens are: with a digit and, where the alphabet has them, letters of both cases."""
    ending = {"lower": "a7", "upper": "B7"}.get(name, "7Ba")
    return take(name, length)[: max(0, length - len(ending))] + ending[: min(length, len(ending))]


def _block(kind, rng):
    lines = "\n".join("".join(rng.choices(_ALPHABETS["b64"], k=64)) for _ in range(38))
    dashes = "-" * 5
    if kind == "putty":
        return (
            f"PuTTY-User-Key-File-3: ssh-ed25519\nEncryption: none\nComment: a\nPublic-Lines: 1\nAAAA\n"
            f"Private-Lines: 38\n{lines}\nPrivate-MAC: {''.join(rng.choices(_ALPHABETS['hex'], k=64))}"
        )
    block = " BLOCK" if kind == "PGP" else ""
    return f"{dashes}BEGIN {kind} PRIVATE KEY{block}{dashes}\n{lines}\n{dashes}END {kind} PRIVATE KEY{block}{dashes}"


def made(template):
    """A secret from its template, the same in every run."""
    rng = random.Random(template)
    if template.startswith("{pem:"):
        return _block(template[5:-1], rng)
    if template == "{putty}":
        return _block("putty", rng)
    return _HOLE.sub(lambda hole: _fill(hole[1], int(hole[2] or 0), rng), template)


def is_held_out(template):
    return hashlib.sha256(template.encode()).digest()[0] % 2 == 1


def cases():
    """Every case: template, carrier, text before, secret, text after."""
    for template in TEMPLATES:
        for carrier, (before, after) in CARRIERS.items():
            yield template, carrier, before, made(template), after
    for before, template, after in _BEFORE_VALUE:
        yield before + template, "place", made(before), made(template), after
