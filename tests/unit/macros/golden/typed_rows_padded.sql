select
    `id` as `id`,
    case
      when DBT_INTERNAL_SOURCE.`code` is not null and (try_cast(DBT_INTERNAL_SOURCE.`code` as char(5)) is null)
      then cast(raise_error(concat('`code` has the value ''', cast(DBT_INTERNAL_SOURCE.`code` as string), ''', which is no char(5). It\'s up to you.')) as char(5))
      else rpad(try_cast(DBT_INTERNAL_SOURCE.`code` as char(5)), greatest(length(try_cast(DBT_INTERNAL_SOURCE.`code` as char(5))), 5))
    end as `code`
  from `shop`.`new_rows` as DBT_INTERNAL_SOURCE
