select
    case
      when DBT_INTERNAL_SOURCE.`at` is not null and (try_cast(DBT_INTERNAL_SOURCE.`at` as date) is null)
      then cast(raise_error(concat('`at` has the value ''', cast(DBT_INTERNAL_SOURCE.`at` as string), ''', which is no date. It\'s up to you.')) as date)
      else try_cast(DBT_INTERNAL_SOURCE.`at` as date)
    end as `at`
  from `shop`.`new_rows` as DBT_INTERNAL_SOURCE
