"""Code and content of the applications of `bench.logins`, each with 120 or 150 pages."""

from __future__ import annotations

USER, PASSWORD = "crawler", "s3cr3t-of-the-bench"
ARTICLES = 120
# Django's admin, or an OpenID provider and a site whose members log in at this provider.
DJANGO = f"""
import sys, time
import django
from django.conf import settings
from django.core.management import call_command, execute_from_command_line
role, port, other, task = sys.argv[1:]
provider = "http://localhost:" + (port if role == "provider" else other)
member = "http://127.0.0.1:" + (port if role == "member" else other)
secret, key = "client-secret-of-the-bench" * 2, "provider.pem"
if role == "provider" and task == "prepare":
    from jwcrypto.jwk import JWK
    open(key, "wb").write(JWK.generate(kty="RSA", size=2048).export_to_pem(True, None))
more = {{
    "admin": {{}},
    "provider": dict(OAUTH2_PROVIDER=dict(
        OIDC_ENABLED=True, OIDC_RSA_PRIVATE_KEY=open(key).read() if role == "provider" else "",
        SCOPES=dict(openid="name", email="address"), PKCE_REQUIRED=False,
        OAUTH2_VALIDATOR_CLASS="__main__.claims")),
    "member": dict(
        LOGIN_URL="oidc_authentication_init", LOGIN_REDIRECT_URL="/", LOGOUT_REDIRECT_URL="/",
        OIDC_RP_CLIENT_ID="bench", OIDC_RP_CLIENT_SECRET=secret, OIDC_RP_SIGN_ALGO="RS256",
        OIDC_OP_AUTHORIZATION_ENDPOINT=provider + "/o/authorize/",
        OIDC_OP_TOKEN_ENDPOINT=provider + "/o/token/",
        OIDC_OP_USER_ENDPOINT=provider + "/o/userinfo/",
        OIDC_OP_JWKS_ENDPOINT=provider + "/o/.well-known/jwks.json",
        AUTHENTICATION_BACKENDS=["mozilla_django_oidc.auth.OIDCAuthenticationBackend"]),
}}[role]
apps = {{"admin": [], "provider": ["oauth2_provider"], "member": ["mozilla_django_oidc"]}}[role]
settings.configure(
    DEBUG=False, SECRET_KEY="bench", ALLOWED_HOSTS=["*"], ROOT_URLCONF="__main__",
    USE_TZ=True, DEFAULT_AUTO_FIELD="django.db.models.AutoField",
    DATABASES={{"default": {{
        "ENGINE": "django.db.backends.sqlite3", "NAME": role + ".sqlite3",
        "OPTIONS": {{"timeout": 20}}}}}},
    INSTALLED_APPS=["django.contrib." + one for one in
                    ("admin", "auth", "contenttypes", "sessions", "messages", "staticfiles")
                    ] + apps,
    MIDDLEWARE=["django.contrib.sessions.middleware.SessionMiddleware",
                "django.middleware.csrf.CsrfViewMiddleware",
                "django.contrib.auth.middleware.AuthenticationMiddleware",
                "django.contrib.messages.middleware.MessageMiddleware"],
    STATIC_URL="static/",
    TEMPLATES=[{{"BACKEND": "django.template.backends.django.DjangoTemplates", "APP_DIRS": True,
                "OPTIONS": {{"context_processors": [
                    "django.template.context_processors.request",
                    "django.contrib.auth.context_processors.auth",
                    "django.contrib.messages.context_processors.messages"]}}}}],
    **more,
)
django.setup()
from django.contrib import admin
from django.contrib.auth.decorators import login_required
from django.contrib.auth.models import Group, User
from django.contrib.auth.views import LoginView
from django.http import HttpResponse
from django.urls import include, path
urlpatterns = [path("admin/", admin.site.urls)]
if role == "provider":
    from oauth2_provider.models import get_application_model
    from oauth2_provider.oauth2_validators import OAuth2Validator
    class claims(OAuth2Validator):
        oidc_claim_scope = None
        def get_additional_claims(self, request):
            return {{"email": request.user.email}}
    urlpatterns += [path("o/", include("oauth2_provider.urls")),
        path("accounts/login/", LoginView.as_view(template_name="admin/login.html"))]
if role == "member":
    @login_required
    def document(request, number=0):
        first = 3 * number + 1
        links = "".join(f"<a href='/doc/{{n}}/'>{{n}}</a>" for n in range(first, first + 3)
                        if n <= {ARTICLES})
        time.sleep(0.2)
        name = Group.objects.get(id=number).name if number else "Welcome"
        return HttpResponse(f"<p id=member>{{request.user}}<a href='/oidc/logout/'>Log out</a>"
                            f"<h1>{{name}}</h1>{{links}}")
    urlpatterns += [path("oidc/", include("mozilla_django_oidc.urls")),
                    path("", document), path("doc/<int:number>/", document)]
if task == "prepare":
    call_command("migrate", verbosity=0)
    user = User.objects.create_superuser("{USER}", "crawler@example.org", "{PASSWORD}")
    Group.objects.bulk_create(Group(name=f"Group number {{n}}") for n in range({ARTICLES}))
    if role == "provider":
        get_application_model().objects.create(
            client_id="bench", client_secret=secret, client_type="confidential", algorithm="RS256",
            authorization_grant_type="authorization-code", skip_authorization=True,
            redirect_uris=member + "/oidc/callback/", user=user)
else:
    execute_from_command_line(["x", "runserver", "--noreload", "--nostatic", "127.0.0.1:" + port])
"""
MEDIAWIKI = """
$wgGroupPermissions['*']['read'] = false; $wgMainCacheType = CACHE_NONE;
$wgSessionCacheType = CACHE_DB; $wgParserCacheType = CACHE_NONE; $wgJobRunRate = 0;
$wgUsePathInfo = false;
"""
WORDPRESS_SETTINGS = """<?php
define('DB_NAME', 'blog'); define('DB_USER', 'root'); define('DB_PASSWORD', '');
define('DB_HOST', 'localhost:{folder}/socket'); define('DB_CHARSET', 'utf8mb4');
define('DB_COLLATE', ''); define('WP_HTTP_BLOCK_EXTERNAL', true); define('DISABLE_WP_CRON', true);
define('WP_CONTENT_DIR', __DIR__ . '/wp-content');
foreach (['AUTH', 'SECURE_AUTH', 'LOGGED_IN', 'NONCE'] as $name) {
    define($name . '_KEY', $name . '-bench'); define($name . '_SALT', 'salt-' . $name);
}
$table_prefix = 'wp_';
if (!defined('ABSPATH')) define('ABSPATH', __DIR__ . '/');
require_once ABSPATH . 'wp-settings.php';
"""
WORDPRESS = f"""<?php
define('WP_INSTALLING', true); $_SERVER['HTTP_HOST'] = $argv[1];
require __DIR__ . '/wp-load.php'; require ABSPATH . 'wp-admin/includes/upgrade.php';
wp_install('The blog', 'owner', 'owner@example.org', false, '', wp_generate_password());
update_option('siteurl', "http://$argv[1]"); update_option('home', "http://$argv[1]");
switch_theme('twentytwentythree'); $wp_rewrite->set_permalink_structure('/%postname%/');
$editor = wp_insert_user(['user_login' => '{USER}', 'user_pass' => '{PASSWORD}',
    'user_email' => 'crawler@example.org', 'role' => 'editor']);
for ($n = 0; $n < {ARTICLES}; $n++) {{
    wp_insert_post(['post_title' => "Post $n", 'post_content' => "Text of post $n.",
        'post_status' => 'private', 'post_author' => $editor, 'post_name' => "post-$n",
        'post_date' => gmdate('Y-m-d H:i:s', 1767225600 + 3600 * $n)]);
}}
"""
REDMINE = f"""
Redmine::DefaultData::Loader.load('en')
ActionMailer::Base.perform_deliveries = false
ActiveJob::Base.queue_adapter = :inline
Setting.login_required = 1
user = User.new(firstname: 'The', lastname: 'Crawler', mail: 'crawler@example.org')
user.login, user.password, user.must_change_passwd = '{USER}', '{PASSWORD}', false
user.save!
project = Project.create!(name: 'Secret', identifier: 'secret', is_public: false,
  enabled_module_names: %w[issue_tracking wiki], trackers: Tracker.all)
Member.create!(project: project, principal: user, roles: [Role.find_by!(name: 'Reporter')])
{ARTICLES}.times do |n|
  Issue.create!(project: project, tracker: Tracker.first, author: user, status: IssueStatus.first,
    priority: IssuePriority.first, subject: "Issue #{{n}}", description: "See ##{{n}}")
end
wiki = project.wiki || Wiki.create!(project: project, start_page: 'Wiki')
30.times do |n|
  page = WikiPage.new(wiki: wiki, title: "Page #{{n}}")
  page.content = WikiContent.new(page: page, author: user, text: "See [[Page #{{n + 1}}]].")
  page.save!
end
start = WikiPage.new(wiki: wiki, title: 'Wiki')
start.content = WikiContent.new(page: start, author: user, text: '[[Page 0]]')
start.save!
"""


def wiki_dump() -> str:
    return f"<mediawiki xml:lang='en'>{''.join(map(_article, range(ARTICLES)))}</mediawiki>"


def _article(number: int) -> str:
    links = " ".join(
        f"[[Article {one}]]" for one in range(3 * number + 1, 3 * number + 4) if one < ARTICLES
    )
    text = f"This is article number {number}. {links}"
    return (
        f"<page><title>Article {number}</title><ns>0</ns><revision><timestamp>2026-01-01T00:00:00Z"
        f"</timestamp><model>wikitext</model><format>text/x-wiki</format><text>{text}</text>"
        "</revision></page>"
    )
