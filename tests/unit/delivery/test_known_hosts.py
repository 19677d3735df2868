"""Host keys in every notation; expected values come from `ssh-keygen -l`."""

from __future__ import annotations

import pytest

from orbweaver.delivery.plan import HostKeyError, host_keys_of

ED25519 = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIOMqqnkVzrm0SdG6UOoqKLsabgH5C9okWi0dh2l9GKJl"
ED25519_PRINT = "SHA256:+DiY3wvvV6TuJJhbpZisF/zLDA0zPMSvHdkr4UvCOqU"  # of github.com
ECDSA = (
    "ecdsa-sha2-nistp256 AAAAE2VjZHNhLXNoYTItbmlzdHAyNTYAAAAIbmlzdHAyNTYAAABBBEmKSENjQEezOmxkZMy7"
    "opKgwFB9nkt5YRrYMjNuG5N87uRgg6CLrbo5wAdT/y6v0mKV0U2w0WZ2YB/++Tpockg="
)
ECDSA_PRINT = "SHA256:p2QAMXNIC1TJYWeIOttrVc98/R1BUFWu3/LiyKgUfQM"  # of github.com
TYPES = ("ssh-ed25519",)


@pytest.mark.parametrize(
    ("text", "prints", "types"),
    [
        (ED25519, {ED25519_PRINT}, TYPES),
        (f"{ED25519} root@files.example.org", {ED25519_PRINT}, TYPES),
        (f"files.example.org,192.0.2.1 {ED25519}", {ED25519_PRINT}, TYPES),
        (f"[files.example.org]:2222 {ED25519}", {ED25519_PRINT}, TYPES),
        (
            f"|1|F1E1KeoE/eEWhi10WpGv4OdiO6Y=|3988QV0VE8wmZL7suNrYQLITLCg= {ED25519}",
            {ED25519_PRINT},
            TYPES,
        ),
        (f"# a comment, SHA256:{'A' * 43}\n{ED25519}\n\n", {ED25519_PRINT}, TYPES),
        (f"a {ED25519}\na {ECDSA}", {ED25519_PRINT, ECDSA_PRINT}, (*TYPES, "ecdsa-sha2-nistp256")),
        (ECDSA_PRINT, {ECDSA_PRINT}, ()),
        (f"{ECDSA_PRINT}=", {ECDSA_PRINT}, ()),
        (f"256 {ED25519_PRINT} no comment (ED25519)", {ED25519_PRINT}, ()),
        (f"{ED25519_PRINT}, {ECDSA_PRINT}", {ED25519_PRINT, ECDSA_PRINT}, ()),
        # With a fingerprint among the keys, not all key types are known.
        (f"{ED25519}\n{ECDSA_PRINT}", {ED25519_PRINT, ECDSA_PRINT}, ()),
    ],
)
def test_host_keys_of_parses_keys_lines_and_fingerprints(
    text: str, prints: set[str], types: tuple[str, ...]
) -> None:
    keys = host_keys_of(text)
    assert keys.fingerprints == prints
    assert keys.types == types
    assert all(keys.include(one) and keys.include(f"{one}=") for one in prints)
    assert not keys.include(f"SHA256:{'A' * 43}")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "names no host key"),
        ("yes", "names no host key"),
        ("MD5:16:27:ac:a5:76:28:2d:36:63:1b:56:4d:eb:df:a6:48", "names no host key"),
        (f"SHA256:{'A' * 42}", "names no host key"),
        (f"@revoked * {ED25519}", "marker"),
        (f"@cert-authority *.example.org {ED25519}", "marker"),
        (f"{ED25519[:-1]}", "not whole"),
        (ED25519.replace("ssh-ed25519", "ssh-rsa"), "of another type"),
        ("ssh-ed25519 AAAA", "names no host key"),
    ],
)
def test_invalid_host_key_is_rejected_with_example(text: str, said: str) -> None:
    with pytest.raises(HostKeyError, match=said):
        host_keys_of(text)
