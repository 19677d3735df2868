"""Users of the hosted console: a user pool with two groups, and its sign-in pages.

An administrator creates users; there is no sign-up. A user in neither group has no access. Users
and groups outlive the stack if stored data does (`removal`). No cost while idle: no advanced
security, no text messages.

Source: docs.aws.amazon.com/cognito/latest/developerguide/, pages authorization-endpoint,
using-pkce-in-authorization-code, cognito-user-pools-assign-domain-prefix.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from aws_cdk import Aws
from aws_cdk import aws_cognito as cognito
from constructs import Construct

from infra.findings import accept
from infra.storage import removal_of
from orbweaver.console.users import Group

if TYPE_CHECKING:
    from infra.config import Config

PASSWORD_CHARS_MIN = 12
TOKEN_MINUTES = 60  # the console keeps no refresh token
MEANINGS = {
    Group.LOOK: "view crawls in the console",
    Group.STEER: "view, start, change and end crawls in the console",
}


class SignInPages(Construct):
    """The user pool, its groups and sign-in pages. `url` is the console's address."""

    def __init__(self, scope: Construct, construct_id: str, config: Config, url: str) -> None:
        super().__init__(scope, construct_id)
        self.pool = self._pool(config)
        for group in Group:
            made = cognito.CfnUserPoolGroup(
                self,
                group.title(),
                user_pool_id=self.pool.ref,
                group_name=group,
                description=MEANINGS[group],
            )
            made.apply_removal_policy(removal_of(config))
        prefix = f"{config.stack_name.lower()}-{Aws.ACCOUNT_ID}"
        domain = cognito.CfnUserPoolDomain(
            self, "Domain", user_pool_id=self.pool.ref, domain=prefix, managed_login_version=1
        )
        self.pages = f"https://{domain.ref}.auth.{Aws.REGION}.amazoncognito.com"
        self.issuer = self.pool.attr_provider_url
        self.client = self._client(url)

    def _pool(self, config: Config) -> cognito.CfnUserPool:
        pool = cognito.CfnUserPool(
            self,
            "Users",
            user_pool_name=f"{config.stack_name}-console",
            user_pool_tier="LITE",
            admin_create_user_config=cognito.CfnUserPool.AdminCreateUserConfigProperty(
                allow_admin_create_user_only=True
            ),
            auto_verified_attributes=["email"],
            account_recovery_setting=cognito.CfnUserPool.AccountRecoverySettingProperty(
                recovery_mechanisms=[
                    cognito.CfnUserPool.RecoveryOptionProperty(name="verified_email", priority=1)
                ]
            ),
            mfa_configuration="OPTIONAL",
            enabled_mfas=["SOFTWARE_TOKEN_MFA"],
            policies=cognito.CfnUserPool.PoliciesProperty(
                password_policy=cognito.CfnUserPool.PasswordPolicyProperty(
                    minimum_length=PASSWORD_CHARS_MIN,
                    require_lowercase=True,
                    require_numbers=True,
                    require_symbols=True,
                    require_uppercase=True,
                )
            ),
            username_configuration=cognito.CfnUserPool.UsernameConfigurationProperty(
                case_sensitive=False
            ),
            # CloudFormation cannot roll back a failed first create of a protected pool, so the pool
            # is protected from the second deployment on.
            deletion_protection="ACTIVE" if config.kept and config.stack_exists else "INACTIVE",
        )
        pool.apply_removal_policy(removal_of(config))
        accept(
            pool,
            "AwsSolutions-COG2",
            "A second factor is optional for users; the account decides whether to require one.",
        )
        for rule in ("AwsSolutions-COG3", "AwsSolutions-COG8"):
            accept(
                pool, rule, "It is billed per user and month; a pool without it costs nothing idle."
            )
        return pool

    def _client(self, url: str) -> cognito.CfnUserPoolClient:
        return cognito.CfnUserPoolClient(
            self,
            "Application",
            user_pool_id=self.pool.ref,
            client_name="console",
            # A browser cannot keep a secret, so the application signs in with a code and PKCE. It
            # gets no token by a password.
            generate_secret=False,
            allowed_o_auth_flows=["code"],
            allowed_o_auth_flows_user_pool_client=True,
            allowed_o_auth_scopes=["openid"],
            callback_ur_ls=[url],
            logout_ur_ls=[url],
            supported_identity_providers=["COGNITO"],
            explicit_auth_flows=["ALLOW_REFRESH_TOKEN_AUTH"],
            prevent_user_existence_errors="ENABLED",
            enable_token_revocation=True,
            access_token_validity=TOKEN_MINUTES,
            id_token_validity=TOKEN_MINUTES,
            refresh_token_validity=TOKEN_MINUTES,
            token_validity_units={f"{one}Token": "minutes" for one in ("access", "id", "refresh")},
        )
