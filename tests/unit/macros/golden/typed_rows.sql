select
    case
      when DBT_INTERNAL_SOURCE.`ID` is not null and (try_cast(DBT_INTERNAL_SOURCE.`ID` as bigint) is null
        or not try_cast(try_cast(DBT_INTERNAL_SOURCE.`ID` as bigint) as double) <=> DBT_INTERNAL_SOURCE.`ID`)
      then cast(raise_error(concat('`ID` has the value ''', cast(DBT_INTERNAL_SOURCE.`ID` as string), ''', which is no bigint. It\'s up to you.')) as bigint)
      else try_cast(DBT_INTERNAL_SOURCE.`ID` as bigint)
    end as `id`,
    `it's ``odd``` as `it's ``odd```,
    transform(DBT_INTERNAL_SOURCE.`nested`, element_1 -> case
      when element_1 is not null and (try_cast(element_1 as bigint) is null)
      then cast(raise_error(concat('`nested`.element has the value ''', cast(element_1 as string), ''', which is no bigint. It\'s up to you.')) as bigint)
      else try_cast(element_1 as bigint)
    end) as `nested`,
    map_from_entries(transform(map_entries(DBT_INTERNAL_SOURCE.`map`), entry_1 -> struct(
      case
      when entry_1.key is not null and (try_cast(entry_1.key as string) is null)
      then cast(raise_error(concat('`map`.key has the value ''', cast(entry_1.key as string), ''', which is no string. It\'s up to you.')) as string)
      else try_cast(entry_1.key as string)
    end as key,
      case
      when entry_1.value is not null and (try_cast(entry_1.value as date) is null
        or not trim(entry_1.value) rlike '^[^ T]*([ T][0:.]*Z?)?$')
      then cast(raise_error(concat('`map`.value has the value ''', cast(entry_1.value as string), ''', which is no date. It\'s up to you.')) as date)
      else try_cast(entry_1.value as date)
    end as value
    ))) as `map`,
    case when DBT_INTERNAL_SOURCE.`struct` is not null then struct(
      DBT_INTERNAL_SOURCE.`struct`.`A b` as `a b`,
      cast(null as date) as `c`
    ) end as `struct`
  from `shop`.`new_rows` as DBT_INTERNAL_SOURCE
