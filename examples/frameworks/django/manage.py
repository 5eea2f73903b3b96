import os
import sys

import pymysql
from django.conf import settings
from django.core.management import execute_from_command_line

# Django asks for the version of mysqlclient.
pymysql.version_info = (2, 2, 8, "final", 0)
pymysql.install_as_MySQLdb()

settings.configure(
    INSTALLED_APPS=["articles"],
    DEFAULT_AUTO_FIELD="django.db.models.BigAutoField",
    DATABASES={
        "default": {
            "ENGINE": "django.db.backends.mysql",
            "HOST": os.environ["SLOTTED_HOST"],
            "PORT": os.environ["SLOTTED_PORT"],
            "USER": os.environ["SLOTTED_USER"],
            "PASSWORD": os.environ["SLOTTED_PASSWORD"],
            "NAME": os.environ["SLOTTED_DATABASE"],
        }
    },
)
execute_from_command_line(sys.argv)
