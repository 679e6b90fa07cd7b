"""Optional packages: the message where one is missing."""

import pytest

from nmt.errors import NotFoundError
from nmt.extras import require


def test_installed_packages_pass() -> None:
    require("serve", "json", "email")


def test_a_missing_package_is_named_with_its_extra() -> None:
    with pytest.raises(NotFoundError, match=r"package absent_package is not .* pip install 'nmt\[serve\]'"):
        require("serve", "json", "absent_package")
