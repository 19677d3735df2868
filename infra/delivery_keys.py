"""Context keys of deliveries: receivers of exports other than the stack's bucket.

Without `sftp_host` and `copy_bucket`, the stack has no resources for deliveries. An SFTP
server must present the configured host key.
"""

from __future__ import annotations

from dataclasses import dataclass

from infra.keys import number, secret, text, unfit
from orbweaver.delivery.known_hosts import HostKeyError, host_keys_of
from orbweaver.delivery.plan import formats_of
from orbweaver.exporting.formats import FORMATS


@dataclass(frozen=True, slots=True, kw_only=True)
class DeliveryKeys:
    """Settings of deliveries: docs/delivery.md."""

    sftp_host: str = text(
        "",
        "name or address of an SFTP server that receives exports: docs/delivery.md",
        pattern=r"([A-Za-z0-9]([A-Za-z0-9.:-]{0,251}[A-Za-z0-9])?)?",
        takes="a name or an address, without a scheme, user or port",
    )
    sftp_port: int = number(22, 1, 65_535, "port of the SFTP server")
    sftp_user: str = text("", "user on the SFTP server", pattern=r"[!-~]{0,64}", takes="a user")
    sftp_folder: str = text(
        "",
        "folder on the SFTP server, absolute or relative to the login's; empty: the login's",
        pattern=r"/?([^/\s\\]+/)*[^/\s\\]*",
        takes="a path without spaces",
    )
    sftp_host_key: str = text(
        "",
        "the server's host key: output of `ssh-keyscan`, or a fingerprint (SHA256:…)",
        pattern=r"[ -~\s]*",
    )
    sftp_secret: str = secret("name or ARN of the secret with the private key of `sftp_user`")
    sftp_formats: str = text(
        "",
        "formats to push, from the exported ones; empty: all",
        pattern=r"[a-z, ]*",
        takes=f"some of {','.join(FORMATS)}",
    )
    copy_bucket: str = text(
        "",
        "name of a bucket, in any account and region, that receives copies of exports",
        pattern=r"([a-z0-9][a-z0-9.-]{1,61}[a-z0-9])?",
        takes="the name of a bucket",
    )

    @property
    def has_receiver(self) -> bool:
        return bool(self.sftp_host or self.copy_bucket)

    def check_delivery(self) -> None:
        """Raise ConfigError if keys contradict each other."""
        needed = {key: getattr(self, key) for key in ("sftp_user", "sftp_host_key", "sftp_secret")}
        if self.sftp_host:
            for key, value in needed.items():
                if not value:
                    raise unfit(key, value, f"sftp_host={self.sftp_host} needs it")
        else:
            for key, value in {**needed, "sftp_folder": self.sftp_folder}.items():
                if value:
                    raise unfit(key, value, "set sftp_host as well")
        try:
            if self.sftp_host:
                host_keys_of(self.sftp_host_key)
        except HostKeyError as error:
            raise unfit("sftp_host_key", self.sftp_host_key, str(error)) from error
        try:
            formats_of(self.sftp_formats)
        except ValueError as error:
            raise unfit("sftp_formats", self.sftp_formats, str(error)) from error
        if any(part == ".." for part in self.sftp_folder.split("/")):
            raise unfit("sftp_folder", self.sftp_folder, "set a path without ..")
