select `check`, bad, example
  from (
    select *, count(*) over (partition by `check`) as bad,
      row_number() over (partition by `check` order by example) as position
    from (
      select
        inline(filter(array(
          if(not is_valid_utf8(`status`), struct(0 as `check`, concat('X', chr(39L), hex(substring(cast(`status` as binary), 1, 20)), if(octet_length(cast(`status` as binary)) > 20, '...', ''), chr(39L)) as example), null),
          if(`day` not between date'0001-01-01' and date'9999-12-31', struct(1 as `check`, cast(`day` as string) as example), null),
          if(`seen` not between timestamp_ltz'0001-01-01 00:00:00Z' and timestamp_ltz'9999-12-31 23:59:59.999999Z', struct(2 as `check`, concat(cast(timestamp_ntz'1970-01-01 00:00:00' + make_dt_interval(0, 0, 0, cast(unix_micros(`seen`) as decimal(20, 0)) / 1000000) as string), 'Z') as example), null),
          if(`placed` not between timestamp_ntz'0001-01-01 00:00:00' and timestamp_ntz'9999-12-31 23:59:59.999999', struct(3 as `check`, cast(`placed` as string) as example), null),
          if(not is_valid_utf8(`code`), struct(4 as `check`, concat('X', chr(39L), hex(substring(cast(`code` as binary), 1, 20)), if(octet_length(cast(`code` as binary)) > 20, '...', ''), chr(39L)) as example), null),
          if(not is_valid_utf8(`it's ``odd```), struct(5 as `check`, concat('X', chr(39L), hex(substring(cast(`it's ``odd``` as binary), 1, 20)), if(octet_length(cast(`it's ``odd``` as binary)) > 20, '...', ''), chr(39L)) as example), null),
          if(exists(map_keys(`tags`), value_1 -> value_1 not between date'0001-01-01' and date'9999-12-31'), struct(6 as `check`, left(to_json(map_from_entries(transform(map_entries(`tags`), entry_1 -> struct(trim(both '["]' from to_json(array(entry_1.key), map('ignoreNullFields', 'false', 'timeZone', 'UTC', 'timestampFormat', concat('yyyy-MM-dd', chr(39L), 'T', chr(39L), 'HH:mm:ss.SSSSSS', 'XXX'), 'timestampNTZFormat', concat('yyyy-MM-dd', chr(39L), 'T', chr(39L), 'HH:mm:ss.SSSSSS')))) as key, entry_1.value as value))), map('ignoreNullFields', 'false', 'timeZone', 'UTC', 'timestampFormat', concat('yyyy-MM-dd', chr(39L), 'T', chr(39L), 'HH:mm:ss.SSSSSS', 'XXX'), 'timestampNTZFormat', concat('yyyy-MM-dd', chr(39L), 'T', chr(39L), 'HH:mm:ss.SSSSSS'))), 60) as example), null),
          if(exists(`visits`, value_1 -> not is_valid_utf8(value_1.`a b`)), struct(7 as `check`, left(to_json(`visits`, map('ignoreNullFields', 'false', 'timeZone', 'UTC', 'timestampFormat', concat('yyyy-MM-dd', chr(39L), 'T', chr(39L), 'HH:mm:ss.SSSSSS', 'XXX'), 'timestampNTZFormat', concat('yyyy-MM-dd', chr(39L), 'T', chr(39L), 'HH:mm:ss.SSSSSS'))), 60) as example), null),
          if(exists(`visits`, value_1 -> value_1.`at` not between timestamp_ltz'0001-01-01 00:00:00Z' and timestamp_ltz'9999-12-31 23:59:59.999999Z'), struct(8 as `check`, left(to_json(`visits`, map('ignoreNullFields', 'false', 'timeZone', 'UTC', 'timestampFormat', concat('yyyy-MM-dd', chr(39L), 'T', chr(39L), 'HH:mm:ss.SSSSSS', 'XXX'), 'timestampNTZFormat', concat('yyyy-MM-dd', chr(39L), 'T', chr(39L), 'HH:mm:ss.SSSSSS'))), 60) as example), null)
        ), found -> found is not null))
      from `shop`.`orders__next`
      where not is_valid_utf8(`status`) or `day` not between date'0001-01-01' and date'9999-12-31' or `seen` not between timestamp_ltz'0001-01-01 00:00:00Z' and timestamp_ltz'9999-12-31 23:59:59.999999Z' or `placed` not between timestamp_ntz'0001-01-01 00:00:00' and timestamp_ntz'9999-12-31 23:59:59.999999' or not is_valid_utf8(`code`) or not is_valid_utf8(`it's ``odd```) or exists(map_keys(`tags`), value_1 -> value_1 not between date'0001-01-01' and date'9999-12-31') or exists(`visits`, value_1 -> not is_valid_utf8(value_1.`a b`)) or exists(`visits`, value_1 -> value_1.`at` not between timestamp_ltz'0001-01-01 00:00:00Z' and timestamp_ltz'9999-12-31 23:59:59.999999Z')
    )
  )
  where position <= 3
  order by `check`, position
