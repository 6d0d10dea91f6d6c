from dbt.adapters.base.plugin import AdapterPlugin

from dbt.adapters.openmirroring.credentials import OpenMirroringCredentials
from dbt.adapters.openmirroring.impl import OpenMirroringAdapter
from dbt.include import openmirroring

Plugin = AdapterPlugin(
    adapter=OpenMirroringAdapter,  # type: ignore[arg-type]
    credentials=OpenMirroringCredentials,
    include_path=openmirroring.PACKAGE_PATH,
    dependencies=["spark"],
)
