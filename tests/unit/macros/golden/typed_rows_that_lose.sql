select
    case
      when DBT_INTERNAL_SOURCE.`decimal(10,4)` is not null and (try_cast(DBT_INTERNAL_SOURCE.`decimal(10,4)` as decimal(5,2)) is null
        or not try_cast(try_cast(DBT_INTERNAL_SOURCE.`decimal(10,4)` as decimal(5,2)) as decimal(10,4)) <=> DBT_INTERNAL_SOURCE.`decimal(10,4)`)
      then cast(raise_error(concat('`decimal(10,4)` has the value ''', cast(DBT_INTERNAL_SOURCE.`decimal(10,4)` as string), ''', which is no decimal(5,2). It\'s up to you.')) as decimal(5,2))
      else try_cast(DBT_INTERNAL_SOURCE.`decimal(10,4)` as decimal(5,2))
    end as `decimal(5,2)`,
    case
      when DBT_INTERNAL_SOURCE.`timestamp` is not null and (try_cast(DBT_INTERNAL_SOURCE.`timestamp` as date) is null
        or not try_cast(try_cast(DBT_INTERNAL_SOURCE.`timestamp` as date) as timestamp) <=> DBT_INTERNAL_SOURCE.`timestamp`)
      then cast(raise_error(concat('`timestamp` has the value ''', cast(DBT_INTERNAL_SOURCE.`timestamp` as string), ''', which is no date. It\'s up to you.')) as date)
      else try_cast(DBT_INTERNAL_SOURCE.`timestamp` as date)
    end as `date`,
    case
      when DBT_INTERNAL_SOURCE.`bigint` is not null and (try_cast(DBT_INTERNAL_SOURCE.`bigint` as double) is null
        or not coalesce(abs(try_cast(try_cast(DBT_INTERNAL_SOURCE.`bigint` as double) as bigint) - DBT_INTERNAL_SOURCE.`bigint`) < 1, false)
        or try_cast(DBT_INTERNAL_SOURCE.`bigint` as double) >= 9223372036854775807D)
      then cast(raise_error(concat('`bigint` has the value ''', cast(DBT_INTERNAL_SOURCE.`bigint` as string), ''', which is no double. It\'s up to you.')) as double)
      else try_cast(DBT_INTERNAL_SOURCE.`bigint` as double)
    end as `double`,
    case
      when DBT_INTERNAL_SOURCE.`decimal(20,0)` is not null and (try_cast(DBT_INTERNAL_SOURCE.`decimal(20,0)` as float) is null
        or not coalesce(abs(try_cast(try_cast(DBT_INTERNAL_SOURCE.`decimal(20,0)` as float) as decimal(20,0)) - DBT_INTERNAL_SOURCE.`decimal(20,0)`) < 1, false))
      then cast(raise_error(concat('`decimal(20,0)` has the value ''', cast(DBT_INTERNAL_SOURCE.`decimal(20,0)` as string), ''', which is no float. It\'s up to you.')) as float)
      else try_cast(DBT_INTERNAL_SOURCE.`decimal(20,0)` as float)
    end as `float`,
    case
      when DBT_INTERNAL_SOURCE.`double` is not null and (try_cast(DBT_INTERNAL_SOURCE.`double` as float) is null
        or abs(try_cast(DBT_INTERNAL_SOURCE.`double` as float)) = double('infinity') and abs(DBT_INTERNAL_SOURCE.`double`) <> double('infinity'))
      then cast(raise_error(concat('`double` has the value ''', cast(DBT_INTERNAL_SOURCE.`double` as string), ''', which is no float. It\'s up to you.')) as float)
      else try_cast(DBT_INTERNAL_SOURCE.`double` as float)
    end as `float`,
    case
      when DBT_INTERNAL_SOURCE.`string` is not null and (try_cast(DBT_INTERNAL_SOURCE.`string` as decimal(5,2)) is null
        or case
          when DBT_INTERNAL_SOURCE.`string` rlike '[eE]' then not try_cast(DBT_INTERNAL_SOURCE.`string` as double) <=> cast(try_cast(DBT_INTERNAL_SOURCE.`string` as decimal(5,2)) as double)
          else length(regexp_extract(DBT_INTERNAL_SOURCE.`string`, '[.]([0-9]*[1-9])', 1)) > 2
        end)
      then cast(raise_error(concat('`string` has the value ''', cast(DBT_INTERNAL_SOURCE.`string` as string), ''', which is no decimal(5,2). It\'s up to you.')) as decimal(5,2))
      else try_cast(DBT_INTERNAL_SOURCE.`string` as decimal(5,2))
    end as `decimal(5,2)`,
    case
      when DBT_INTERNAL_SOURCE.`varchar(9)` is not null and (try_cast(DBT_INTERNAL_SOURCE.`varchar(9)` as date) is null
        or not trim(DBT_INTERNAL_SOURCE.`varchar(9)`) rlike '^[^ T]*([ T][0:.]*Z?)?$')
      then cast(raise_error(concat('`varchar(9)` has the value ''', cast(DBT_INTERNAL_SOURCE.`varchar(9)` as string), ''', which is no date. It\'s up to you.')) as date)
      else try_cast(DBT_INTERNAL_SOURCE.`varchar(9)` as date)
    end as `date`
  from `shop`.`new_rows` as DBT_INTERNAL_SOURCE
