select /*+ COALESCE(1) */
    `id` as `id`,
    `status` as `status`,
    `day` as `day`,
    `price` as `price`,
    timestamp_micros(cast(cast(cast(`placed` - timestamp_ntz'1970-01-01 00:00:00' as interval second) as decimal(20, 6)) * 1000000 as bigint)) as `placed`,
    cast(`code` as string) as `code`,
    to_json(map_from_entries(transform(map_entries(`tags`), entry_1 -> struct(trim(both '["]' from to_json(array(entry_1.key), map('ignoreNullFields', 'false', 'timeZone', 'UTC', 'timestampFormat', concat('yyyy-MM-dd', chr(39L), 'T', chr(39L), 'HH:mm:ss.SSSSSS', 'XXX'), 'timestampNTZFormat', concat('yyyy-MM-dd', chr(39L), 'T', chr(39L), 'HH:mm:ss.SSSSSS')))) as key, entry_1.value as value))), map('ignoreNullFields', 'false', 'timeZone', 'UTC', 'timestampFormat', concat('yyyy-MM-dd', chr(39L), 'T', chr(39L), 'HH:mm:ss.SSSSSS', 'XXX'), 'timestampNTZFormat', concat('yyyy-MM-dd', chr(39L), 'T', chr(39L), 'HH:mm:ss.SSSSSS'))) as `tags`,
    `it's ``odd``` as `it's ``odd```,
    `amount` as `amount`,
    `photo` as `photo`,
    `seen` as `seen`
  from `shop`.`it's ``odd```
