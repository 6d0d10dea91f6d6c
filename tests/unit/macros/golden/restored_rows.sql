select
    cast(`id` as bigint) as `id`,
    cast(cast(`code` as string) as char(3)) as `code`,
    timestamp_ntz'1970-01-01 00:00:00' + cast(cast(cast(unix_micros(cast(`placed` as timestamp)) as decimal(20, 0)) / 1000000 as decimal(20, 6)) as interval second) as `placed`,
    map_from_entries(transform(map_entries(from_json(cast(`tags` as string), 'map<string,int>', map('mode', 'FAILFAST', 'ignoreNullFields', 'false', 'timeZone', 'UTC', 'timestampFormat', concat('yyyy-MM-dd', chr(39L), 'T', chr(39L), 'HH:mm:ss.SSSSSS', 'XXX'), 'timestampNTZFormat', concat('yyyy-MM-dd', chr(39L), 'T', chr(39L), 'HH:mm:ss.SSSSSS')))), entry_1 -> struct(from_json(concat('["', entry_1.key, '"]'), 'array<date>', map('mode', 'FAILFAST', 'ignoreNullFields', 'false', 'timeZone', 'UTC', 'timestampFormat', concat('yyyy-MM-dd', chr(39L), 'T', chr(39L), 'HH:mm:ss.SSSSSS', 'XXX'), 'timestampNTZFormat', concat('yyyy-MM-dd', chr(39L), 'T', chr(39L), 'HH:mm:ss.SSSSSS')))[0] as key, entry_1.value as value))) as `tags`,
    cast(`it's ``odd``` as string) as `it's ``odd```
  from openmirroring_mirrored
