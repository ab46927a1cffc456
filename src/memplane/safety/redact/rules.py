"""The rule table: forms first, then names, so that a tie goes to what says more."""

import re
from collections.abc import Iterator
from typing import Final

from memplane.safety.redact.names import (
    TrustOf,
    assignment,
    named,
    trust_authorization,
    trust_credentials,
    trust_key,
    trust_password,
    trust_secret,
    trust_token,
)
from memplane.safety.redact.rule import (
    Check,
    Gate,
    Pattern,
    Rule,
    all_kinds,
    basic,
    bearer,
    both_cases,
    database_password,
    encoded_jwt,
    encoded_text,
    key_block,
    login,
    real,
    url_password,
    with_digit,
)

_LEFT = r"(?:(?<![A-Za-z0-9_])|(?<=\\[nrt])|(?<=%[0-9A-Fa-f]{2}))"
"""Where a token may start: not inside a word, but after an escaped line break or an encoded character."""
_LEFT_STRICT = r"(?:(?<![A-Za-z0-9_/.-])|(?<=\\[nrt]))"
"""As `_LEFT`, for forms that paths and identifiers can hold too."""

_CHECKS: dict[str, Check] = {
    "real": real,
    "digit": with_digit,
    "cases": both_cases,
    "mixed": all_kinds,
    "jwt": encoded_jwt,
}


def _rows(table: str) -> Iterator[list[str]]:
    """The cells of a table whose columns are two or more blanks apart."""
    return (re.split(" {2,}", line) for line in table.strip().splitlines() if not line.startswith("#"))


def _forms(table: str) -> Iterator[Rule]:
    """Rules from rows of type, meaning, prefixes, what follows them, check."""
    for type, what, prefixes, body, check in _rows(table):
        each = prefixes.split()
        name, _, strict = check.partition(" ")
        start = f"{_LEFT_STRICT if strict else _LEFT}((?:{'|'.join(map(re.escape, each))}){body})"
        hints = tuple(prefix.lower() for prefix in each)
        yield Rule(type, what, hints, Pattern(start, re.ASCII), _CHECKS[name])


def _shapes(table: str) -> Iterator[Rule]:
    """Rules from rows of type, meaning, hint, pattern, check."""
    for type, what, hint, pattern, check in _rows(table):
        yield Rule(type, what, (hint,), Pattern(pattern, re.ASCII), _CHECKS[check])


_FORMS = r"""
# Models and their tools
openai-key  OpenAI project, service or admin key  sk-proj- sk-svcacct- sk-admin-  [\w-]{8,512}  real
groq-key  Groq key  gsk_  [A-Za-z0-9]{40,64}  real
xai-key  xAI key  xai-  [A-Za-z0-9]{60,100}  real
perplexity-key  Perplexity key  pplx-  [A-Za-z0-9]{40,64}  real
huggingface-token  Hugging Face token  hf_ api_org_  [A-Za-z0-9]{34,40}(?!\w)  cases
replicate-token  Replicate token  r8_  [A-Za-z0-9]{37,40}  digit
nvidia-key  NVIDIA API key  nvapi-  [\w-]{40,100}  real
pinecone-key  Pinecone key  pcsk_  \w{40,100}  real
langsmith-key  LangSmith key  lsv2_pt_ lsv2_sk_  [0-9a-f]{32}_[0-9a-f]{10}  real
tavily-key  Tavily key  tvly-  [\w-]{20,64}  digit
firecrawl-key  Firecrawl key  fc-  [0-9a-f]{32}(?![A-Za-z0-9])  real strict
memplane-key  Memplane key  mp_  [0-9a-f]{16}_[A-Za-z0-9]{43}(?!\w)  real
# Code and packages
github-token  GitHub token  ghp_ gho_ ghu_ ghs_ ghr_ github_pat_  \w{10,255}  real
gitlab-token  GitLab token  glpat- gldt- glrt- glrtr- gloas- glptt- glcbt- glft- glsoat- glimt- glagent- glffct- glwt-  [\w.-]{20,300}  real
gitlab-token  GitLab runner registration token  GR1348941  [\w-]{20}  cases
atlassian-token  Atlassian or Bitbucket token  ATATT3 ATCTT3 ATBB  [\w=-]{24,300}  real
sourcegraph-token  Sourcegraph token  sgp_  (?:(?:local|[0-9a-fA-F]{16})_)?[0-9a-fA-F]{40}(?!\w)  real
npm-token  npm token  npm_  [A-Za-z0-9]{36}(?!\w)  real
pypi-token  PyPI token  pypi-AgE  [\w-]{40,1000}  real
rubygems-token  RubyGems token  rubygems_  [0-9a-f]{48}  real
nuget-key  NuGet key  oy2  [a-z0-9]{43}(?!\w)  digit
clojars-token  Clojars token  CLOJARS_  [a-z0-9]{60}  real
docker-token  Docker Hub token  dckr_pat_ dckr_oat_  [\w-]{24,64}  real
artifactory-token  JFrog Artifactory key or token  AKCp cmVmdGtu  [A-Za-z0-9]{50,80}  real
sonar-token  SonarQube token  squ_ sqp_ sqa_  [0-9a-f]{40}  real
circleci-token  CircleCI token  CCIPAT_ CCIPRJ_  \w{30,100}  real
buildkite-token  Buildkite token  bkua_  [0-9a-f]{40}  real
# Clouds
aws-access-key  AWS access key id  AKIA ASIA ABIA ACCA  [0-9A-Z]{16}(?![A-Za-z0-9])  real
aws-bedrock-key  Amazon Bedrock API key  ABSKQmVkcm9ja0FQSUtleS  [A-Za-z0-9+/]{80,260}={0,2}(?![A-Za-z0-9+/])  real
aws-bedrock-key  Amazon Bedrock short-term API key  bedrock-api-key-  [A-Za-z0-9+/]{40,4000}={0,2}  real
google-api-key  Google API key  AIza  [\w-]{35}(?![\w-])  real
google-oauth-token  Google OAuth access token  ya29.  [\w.-]{10,1000}  real
google-client-secret  Google OAuth client secret  GOCSPX-  [\w-]{20,40}  real
google-refresh-token  Google OAuth refresh token  1//0  [\w-]{40,200}  real strict
digitalocean-token  DigitalOcean token  dop_v1_ doo_v1_ dor_v1_  [0-9a-f]{64}  real
alibaba-key  Alibaba Cloud access key id  LTAI  [A-Za-z0-9]{16,24}(?!\w)  cases
tencent-key  Tencent Cloud secret id  AKID  [A-Za-z0-9]{32}(?!\w)  mixed
yandex-key  Yandex Cloud key  AQVN YCAJ  [\w-]{30,45}(?![\w-])  digit
cloudflare-key  Cloudflare origin CA key  v1.0-  [0-9a-f]{24}-[0-9a-f]{100,200}  real
heroku-key  Heroku key  HRKU-  [\w-]{30,80}  real
flyio-token  Fly.io token  fo1_ fm1_ fm1a_ fm1r_ fm2_  [A-Za-z0-9+/=_-]{40,1000}  mixed
planetscale-token  PlanetScale token or password  pscale_tkn_ pscale_pw_ pscale_oauth_  [\w=.-]{30,64}  real
supabase-key  Supabase key  sbp_ sb_secret_  \w{20,64}  digit
databricks-token  Databricks token  dapi  [0-9a-f]{32}(?:-[0-9])?(?![A-Za-z0-9])  real
openshift-token  OpenShift token  sha256~  [\w-]{43}(?![\w-])  real
octopus-key  Octopus Deploy key  API-  [A-Z0-9]{25,26}(?![A-Za-z0-9])  digit strict
# Vaults
vault-token  HashiCorp Vault token  hvs. hvb. hvr.  [\w-]{24,300}  real
vault-token  HashiCorp Vault token, old form  s.  [A-Za-z0-9]{24}(?![\w.])  mixed strict
doppler-token  Doppler token  dp.pt. dp.st. dp.ct. dp.sa. dp.scim. dp.audit.  [\w.-]{40,80}  real
onepassword-token  1Password service account token  ops_eyJ  [A-Za-z0-9+/=_-]{200,2000}  real
onepassword-key  1Password secret key  A3-  [A-Z0-9]{6}(?:-[A-Z0-9]{5,11}){4,5}(?![A-Za-z0-9-])  digit
age-key  age secret key  AGE-SECRET-KEY-1  [A-Z0-9]{58}  real
pulumi-token  Pulumi token  pul-  [0-9a-f]{40}(?!\w)  real strict
infracost-key  Infracost key  ico-  [A-Za-z0-9]{32}(?!\w)  mixed strict
tailscale-key  Tailscale key  tskey-  [a-z]{2,12}-[A-Za-z0-9-]{16,80}  real
# Messages
slack-token  Slack token  xoxb- xoxp- xoxa- xoxr- xoxs- xoxo- xapp-  [A-Za-z0-9-]{16,300}  digit strict
slack-token  Slack token that rotates  xoxe- xoxe.xoxb- xoxe.xoxp-  [0-9]-[A-Za-z0-9]{60,400}  real strict
twilio-key  Twilio API key  SK  [0-9a-f]{32}(?!\w)  real
sendgrid-key  SendGrid key  SG.  [\w=-]{10,32}[\w=.-]{30,64}  cases
mailgun-key  Mailgun key  key-  [0-9a-f]{32}(?!\w)  real strict
brevo-key  Brevo key  xkeysib-  [0-9a-f]{64}-[A-Za-z0-9]{16}  real
# Money and shops
stripe-key  Stripe key  sk_live_ sk_test_ sk_prod_ rk_live_ rk_test_ rk_prod_ pk_live_ pk_test_  [A-Za-z0-9]{8,256}  real
stripe-webhook-secret  Stripe webhook secret  whsec_  [A-Za-z0-9+/=]{20,128}  real
square-token  Square token or secret  sq0atp- sq0csp- sq0idp-  [\w-]{22,80}  real
square-token  Square access token  EAAA  [\w-]{60}(?![\w-])  mixed strict
shopify-token  Shopify token  shpat_ shpca_ shppa_ shpss_  [0-9a-fA-F]{32}  real
shippo-token  Shippo token  shippo_live_ shippo_test_  [0-9a-f]{40}  real
easypost-key  EasyPost key  EZAK EZTK  [A-Za-z0-9]{54}(?!\w)  real
flutterwave-key  Flutterwave key  FLWSECK FLWPUBK  (?:_TEST)?-[0-9a-h]{32}-X  real
duffel-token  Duffel token  duffel_live_ duffel_test_  [\w=-]{40,64}  real
plaid-token  Plaid access token  access-sandbox- access-development- access-production-  [0-9a-f-]{36}  real
# Work
notion-token  Notion token  ntn_  [0-9]{11}[A-Za-z0-9]{32,36}(?!\w)  mixed
notion-token  Notion token, old form  secret_  [A-Za-z0-9]{43}(?!\w)  mixed
linear-key  Linear key  lin_api_ lin_oauth_  [A-Za-z0-9]{32,64}  real
figma-token  Figma token  figd_ figu_  [\w-]{30,64}  real
airtable-token  Airtable token  pat  [A-Za-z0-9]{14}\.[0-9a-f]{64}  real
asana-token  Asana token  1/ 2/  [0-9]{16}(?:/[0-9]{16})?:[0-9a-f]{32}  real strict
contentful-token  Contentful token  CFPAT-  [\w-]{40,64}  real
typeform-token  Typeform token  tfp_  [\w=.-]{59}  real
hubspot-token  HubSpot token  pat-na1- pat-na2- pat-eu1-  [0-9a-f-]{36}  real
dropbox-token  Dropbox token  sl.  [\w=-]{120,1200}  mixed strict
adobe-secret  Adobe client secret  p8e-  [A-Za-z0-9]{32}(?!\w)  real
frameio-token  Frame.io token  fio-u-  [\w=-]{64}  real
readme-key  ReadMe key  rdme_  [a-z0-9]{70}  real
postman-key  Postman key  PMAK-  [0-9a-f]{24}-[0-9a-f]{34}  real
intra42-secret  42 intra client secret  s-s4t2ud- s-s4t2af-  [0-9a-f]{64}  real
# Watching and shipping
grafana-token  Grafana token  glc_ glsa_  [A-Za-z0-9+/=_]{32,400}  mixed
grafana-token  Grafana key, old form  eyJrIjoi  [A-Za-z0-9+/=]{60,400}  real
newrelic-key  New Relic key  NRAK- NRJS- NRII- NRAL-  [A-Za-z0-9-]{19,32}  real
sentry-token  Sentry token  sntrys_ sntryu_  [A-Za-z0-9+/=_-]{40,500}  real
dynatrace-token  Dynatrace token  dt0c01.  [A-Z0-9]{24}\.[A-Z0-9]{64}  real
posthog-key  PostHog personal key  phx_  [A-Za-z0-9]{40,64}  real
harness-token  Harness token  pat. sat.  [\w-]{22}\.[0-9a-f]{24}\.[A-Za-z0-9]{20}  real
prefect-key  Prefect key  pnu_ pnb_  [A-Za-z0-9]{36}(?!\w)  digit
scalingo-token  Scalingo token  tk-us-  [\w-]{48}  real
settlemint-token  SettleMint token  sm_pat_ sm_sat_ sm_aat_  [A-Za-z0-9]{16}  real
# People
facebook-token  Facebook page or user token  EAAM EAAC EAAB EAAG EAAD  [A-Za-z0-9]{80,400}  digit
mapbox-token  Mapbox token  sk.eyJ pk.eyJ  [\w-]{20,200}\.[\w-]{20,30}  real
"""
"""One token to a row. The word `strict` after a check asks for `_LEFT_STRICT`."""

_SHAPES = r"""
azure-client-secret  Azure AD client secret: all but its first four characters  q~  (?<=[\w.~-]{3}[0-9])(Q~[\w.~-]{31,34})(?![\w.~-])  real
azure-sas  Azure shared access signature  sig=  (?<=[?&;])sig=([A-Za-z0-9%+/=_-]{30,200})  digit
terraform-token  Terraform Cloud token: what follows its id  .atlasv1.  (?<=[A-Za-z0-9]{14})\.atlasv1\.([\w=-]{60,80})  real
slack-webhook  Slack webhook: what follows the host  hooks.slack.com/  hooks\.slack\.com/(?:services|workflows|triggers)/([\w/+-]{20,200})  real
discord-webhook  Discord webhook: what follows its id  /api/webhooks/  /api/webhooks/[0-9]{15,21}/([\w-]{40,100})  real
discord-token  Discord bot token: what follows the bot's id  .  (?:(?<=[MNO][\w-]{23})|(?<=[MNO][\w-]{25}))\.([\w-]{6}\.[\w-]{27,38})(?![\w.-])  mixed
telegram-token  Telegram bot token: what follows the bot's id  :a  (?<=[0-9]{8}):(A[\w-]{34})(?![\w-])  cases
teams-webhook  Microsoft Teams webhook: what follows the host  .webhook.office.com/  \.webhook\.office\.com/webhookb2/([A-Za-z0-9@/-]{60,250})  real
facebook-token  Facebook app token: what follows the app's id  |  (?<=[0-9]{15})\|([\w-]{27})(?![\w-])  mixed
jwt  JSON Web Token  eyj  (?:(?<![\w-])|(?<=\\[nrt]))(eyJ[\w-]{8,}\.eyJ[\w-]{8,}(?:\.[\w-]*){0,3})  real
jwt  JSON Web Token, encoded once more  zxlk  (?<![\w+/-])(ZXlK[\w+/-]{60,})={0,2}  jwt
"""

_NAMES: tuple[tuple[str, str, str, TrustOf, Gate], ...] = (
    ("password", "Value of a name that ends in password, passphrase, …", "pass", trust_password, Gate.OPEN),
    ("password", "Value of a name that ends in pwd", "pwd", trust_password, Gate.OPERATOR),
    ("secret", "Value of a name that ends in secret", "secret", trust_secret, Gate.OPERATOR),
    (
        "api-key",
        "Value of an API key, an access key, …; random one of another",
        "key",
        trust_key,
        Gate.OPERATOR,
    ),
    ("token", "Value of an access token, …; random one of another", "token", trust_token, Gate.OPERATOR),
    ("authorization", "Value of an Authorization header", "auth", trust_authorization, Gate.OPERATOR),
    ("credentials", "Random value of a name that ends in credentials", "cred", trust_credentials, Gate.TEXT),
)

_DATABASES = (
    "postgres postgresql mysql mariadb mongodb mongodb+srv redis rediss amqp amqps mssql sqlserver clickhouse"
)
_AFTER_DATABASE = "|".join(f"(?<=(?i:{re.escape(name)}))" for name in _DATABASES.split())

RULES: Final[tuple[Rule, ...]] = (
    Rule(
        "private-key",
        "PEM or PGP private key: the whole block, to the end of the text if it is not closed",
        ("-----begin",),
        Pattern(
            r"-----BEGIN\s{1,4}(?:[A-Z0-9]{1,12}\s{1,4}){0,3}PRIVATE\s{1,4}KEY(?:\s{1,4}BLOCK)?-----"
            r"(?P<body>(?s:.)*?)(?:(?P<closed>-----END\s[A-Z0-9 ]{0,40}PRIVATE\s{1,4}KEY(?:\s{1,4}BLOCK)?-----)|\Z)"
        ),
        key_block,
        Gate.TEXT,
    ),
    Rule(
        "anthropic-key",
        "Anthropic key",
        ("sk-",),
        Pattern(rf"{_LEFT}(sk-ant-[\w-]{{8,256}})", re.ASCII),
        real,
        Gate.OPEN,
    ),
    *_forms(_FORMS),
    *_shapes(_SHAPES),
    Rule(
        "aws-secret-key",
        "AWS secret access key, by its name",
        ("secret_access_key", "secretaccesskey", "aws_secret"),
        Pattern(
            r"""[A-Za-z_]{8,24}["'\]\s]{0,3}[:=]{1,2}>?\s{0,4}["']?([A-Za-z0-9/+]{40})(?![A-Za-z0-9/+=])"""
        ),
        with_digit,
        Gate.TEXT,
    ),
    Rule(
        "sk-key",
        "Key in the `sk-` form of OpenAI and those who followed it",
        ("sk-",),
        Pattern(
            rf"{_LEFT}(sk-(?!(?:learn|image|prefix(?:ed)?|based|style|format)(?!\w))[\w-]{{6,512}})", re.ASCII
        ),
        real,
        Gate.OPEN,
    ),
    Rule(
        "sk-key",
        "Key in the `sk_`, `pk_` or `pk-` form",
        ("sk_", "pk_", "pk-"),
        Pattern(rf"{_LEFT}((?:[sp]k_|pk-)[A-Za-z0-9]{{8,256}})(?!\w)", re.ASCII),
        with_digit,
    ),
    Rule(
        "connection-string",
        "Password in the address of a database or a queue",
        ("://",),
        Pattern(
            rf"(?:{_AFTER_DATABASE})://(?P<user>[^\s:/@\"'<>`]{{0,128}}):"
            r"(?P<password>[^\s/\"'<>`]{1,256})@(?=[^\s@/])"
        ),
        database_password,
        Gate.OPERATOR,
        ("@",),
    ),
    Rule(
        "url-credentials",
        "Password in any other address",
        ("://",),
        Pattern(
            r"(?<=[A-Za-z0-9])://(?P<user>[^\s:/?#@\"'<>`]{0,128}):"
            r"(?P<password>[^\s/?#\"'<>`]{1,256})@(?=[^\s@/])"
        ),
        url_password,
        Gate.OPERATOR,
        ("@",),
    ),
    Rule(
        "bearer-token",
        "What follows the word Bearer, unless it is a word too",
        ("bearer",),
        Pattern(r"(?<![A-Za-z0-9])(?i:bearer)\s{1,8}([A-Za-z0-9._~+/=:-]{6,})"),
        bearer,
        Gate.OPEN,
    ),
    Rule(
        "basic-credentials",
        "What follows the word Basic, if it decodes to user and password",
        ("basic ",),
        Pattern(r"(?<![A-Za-z0-9])(?i:basic)[ ]{1,4}([A-Za-z0-9+/]{8,1024}={0,2})"),
        basic,
        Gate.TEXT,
    ),
    Rule(
        "login",
        "Password in curl's `-u user:password`",
        ("-u", "--user"),
        Pattern(
            r"""(?<![A-Za-z0-9-])-(?:u|-user)(?:[ \t]{1,4}|=)["']?(?P<user>[^\s:"'<>]{0,128})["']?:"""
            r"""["']?(?P<password>[^\s"'<>]{0,128})"""
        ),
        login,
        Gate.OPERATOR,
        ("curl",),
    ),
    Rule(
        "login",
        "Bundler's credentials for a gem server",
        ("bundle_",),
        Pattern(
            r"""BUNDLE_[A-Z0-9_]{2,64}["']?\s{0,4}[:=]\s{0,4}["']?(?P<user>[^\s:"']{1,64}):"""
            r"""(?P<password>[^\s"'/]{1,128})"""
        ),
        login,
        Gate.TEXT,
    ),
    Rule(
        "kubernetes-secret",
        "Value in a Kubernetes Secret, in base64",
        (":",),
        Pattern(r""":[ \t]{1,4}["']?([A-Za-z0-9+/]{8,4096}={0,2})["']?[ \t]{0,4}(?=[,}\r\n]|\Z)"""),
        encoded_text,
        Gate.TEXT,
        ("kind: secret", 'kind: "secret', "kind: 'secret", '"kind": "secret', '"kind":"secret'),
    ),
    *(
        Rule(type, what, (stem,), assignment(stem), named(trust), gate)
        for type, what, stem, trust, gate in _NAMES
    ),
)
