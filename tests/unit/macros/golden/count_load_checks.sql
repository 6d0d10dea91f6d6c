select coalesce(sum(n), 0) as inserted, coalesce(bool_or(bad), false) as refused
    from (
      select count(*) as n, count(*) > 1 or (`k0` is null or `k1` is null) as bad
      from (
        select /*+ COALESCE(1) */ k0, k1
        from (select if(not is_valid_utf8(`status`) or `day` not between date'0001-01-01' and date'9999-12-31' or `seen` not between timestamp_ltz'0001-01-01 00:00:00Z' and timestamp_ltz'9999-12-31 23:59:59.999999Z' or `placed` not between timestamp_ntz'0001-01-01 00:00:00' and timestamp_ntz'9999-12-31 23:59:59.999999' or not is_valid_utf8(`code`) or not is_valid_utf8(`it's ``odd```) or exists(map_keys(`tags`), value_1 -> value_1 not between date'0001-01-01' and date'9999-12-31') or exists(`visits`, value_1 -> not is_valid_utf8(value_1.`a b`)) or exists(`visits`, value_1 -> value_1.`at` not between timestamp_ltz'0001-01-01 00:00:00Z' and timestamp_ltz'9999-12-31 23:59:59.999999Z'), null, `id`) as k0, cast(`code` as string) as k1 from `shop`.`orders__next`)
      )
      group by k0, k1
    )
