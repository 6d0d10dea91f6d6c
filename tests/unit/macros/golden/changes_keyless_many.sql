select /*+ COALESCE(9) */
      c0 as `it's ``odd```,
      c1 as `tags`
  from (
    select
      latest.*, changed.n, row_number() over (partition by d0, d1 order by d0) as copy
    from (
      select
        `it's ``odd``` as c0,
        to_json(map_from_entries(transform(map_entries(`tags`), entry_1 -> struct(trim(both '["]' from to_json(array(entry_1.key), map('ignoreNullFields', 'false', 'timeZone', 'UTC', 'timestampFormat', concat('yyyy-MM-dd', chr(39L), 'T', chr(39L), 'HH:mm:ss.SSSSSS', 'XXX'), 'timestampNTZFormat', concat('yyyy-MM-dd', chr(39L), 'T', chr(39L), 'HH:mm:ss.SSSSSS')))) as key, entry_1.value as value))), map('ignoreNullFields', 'false', 'timeZone', 'UTC', 'timestampFormat', concat('yyyy-MM-dd', chr(39L), 'T', chr(39L), 'HH:mm:ss.SSSSSS', 'XXX'), 'timestampNTZFormat', concat('yyyy-MM-dd', chr(39L), 'T', chr(39L), 'HH:mm:ss.SSSSSS'))) as c1,
        xxhash64(0, if(`it's ``odd``` is null, 1, 0) | if(`tags` is null, 2, 0), `it's ``odd```, to_json(map_from_entries(transform(map_entries(`tags`), entry_1 -> struct(trim(both '["]' from to_json(array(entry_1.key), map('ignoreNullFields', 'false', 'timeZone', 'UTC', 'timestampFormat', concat('yyyy-MM-dd', chr(39L), 'T', chr(39L), 'HH:mm:ss.SSSSSS', 'XXX'), 'timestampNTZFormat', concat('yyyy-MM-dd', chr(39L), 'T', chr(39L), 'HH:mm:ss.SSSSSS')))) as key, entry_1.value as value))), map('ignoreNullFields', 'false', 'timeZone', 'UTC', 'timestampFormat', concat('yyyy-MM-dd', chr(39L), 'T', chr(39L), 'HH:mm:ss.SSSSSS', 'XXX'), 'timestampNTZFormat', concat('yyyy-MM-dd', chr(39L), 'T', chr(39L), 'HH:mm:ss.SSSSSS')))) as d0, xxhash64(1, if(`it's ``odd``` is null, 1, 0) | if(`tags` is null, 2, 0), `it's ``odd```, to_json(map_from_entries(transform(map_entries(`tags`), entry_1 -> struct(trim(both '["]' from to_json(array(entry_1.key), map('ignoreNullFields', 'false', 'timeZone', 'UTC', 'timestampFormat', concat('yyyy-MM-dd', chr(39L), 'T', chr(39L), 'HH:mm:ss.SSSSSS', 'XXX'), 'timestampNTZFormat', concat('yyyy-MM-dd', chr(39L), 'T', chr(39L), 'HH:mm:ss.SSSSSS')))) as key, entry_1.value as value))), map('ignoreNullFields', 'false', 'timeZone', 'UTC', 'timestampFormat', concat('yyyy-MM-dd', chr(39L), 'T', chr(39L), 'HH:mm:ss.SSSSSS', 'XXX'), 'timestampNTZFormat', concat('yyyy-MM-dd', chr(39L), 'T', chr(39L), 'HH:mm:ss.SSSSSS')))) as d1
      from (select * from `shop`.`orders__next` where _metadata.file_name not in ('a.parquet'))
    ) as latest
    join `shop`.`changed` as changed on latest.d0 = changed.k0 and latest.d1 = changed.k1
  )
  where copy <= n
